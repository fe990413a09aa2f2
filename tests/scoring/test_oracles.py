"""minicons and lm-evaluation-harness on exported models give our likelihoods: the extra ``workbench[score]``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scoring.test_reader import reader
from workbench.client.run import Run
from workbench.models.export import export
from workbench.scoring.reader import Reader

__all__ = ["reader"]
pytestmark = [pytest.mark.process, pytest.mark.extended]
SENTENCES = [
    f"the {noun} {verb} {rest}"
    for noun in ("cat", "house", "king", "child", "river")
    for verb in ("was", "were", "has seen", "gave", "is not")
    for rest in ("here", "a man")
]


@pytest.fixture
def exported(run: Run, tmp_path: Path) -> str:
    export(run.folder, tmp_path / "model")
    return str(tmp_path / "model")


def test_minicons_gives_the_same_sentences(reader: Reader, exported: str) -> None:
    """Of masked models only: its causal scorer has no place for a [CLS] in front."""
    scorer = pytest.importorskip("minicons.scorer", reason="pip install workbench[score] brings minicons")
    import workbench.transformers  # noqa: F401

    if reader.causal:
        pytest.skip("its causal scorer does not count what follows the first token")
    theirs = scorer.MaskedLMScorer(exported, "cpu")
    # minicons 0.3 calls it by the name that transformers 5 has dropped.
    theirs.tokenizer.batch_encode_plus = theirs.tokenizer.__call__
    theirs = theirs.sequence_score(SENTENCES, reduction=lambda nats: nats.sum().item())
    ours = reader.likelihoods(reader.pairs([("", sentence) for sentence in SENTENCES])).nats_P
    assert len(ours) == 50
    assert ours.tolist() == pytest.approx(theirs, rel=1e-4)


def test_lm_eval_gives_the_same_continuations(reader: Reader, exported: str) -> None:
    huggingface = pytest.importorskip(
        "lm_eval.models.huggingface", reason="pip install workbench[score] brings lm-eval"
    )
    from lm_eval.api.instance import Instance

    import workbench.transformers  # noqa: F401

    if not reader.causal:
        pytest.skip("it scores causal models")
    # As the documented command: no frame of the tokenizer's, [CLS] in front of an empty context.
    cls = reader.vocabulary.cls
    model = huggingface.HFLM(pretrained=exported, device="cpu", batch_size=8, add_bos_token=False, prefix_token_id=cls)
    requests = [Instance("loglikelihood", {}, ("", sentence), number) for number, sentence in enumerate(SENTENCES)]
    theirs = [nats for nats, _ in model.loglikelihood(requests, disable_tqdm=True)]
    ours = reader.likelihoods(reader.pairs([("", sentence) for sentence in SENTENCES]))
    assert ours.nats_P.tolist() == pytest.approx(theirs, rel=1e-4)
    # Contexts: the harness gives them as the tokenizer does, so [CLS] is written out.
    begin = reader.tokenizer.id_to_token(cls)
    pairs = [(sentence.rpartition(" ")[0], f" {sentence.rpartition(' ')[2]}") for sentence in SENTENCES]
    requests = [Instance("loglikelihood", {}, (begin + context, text), number) for number, (context, text) in
                enumerate(pairs)]  # fmt: skip
    theirs = model.loglikelihood(requests, disable_tqdm=True)
    ours = reader.likelihoods(reader.pairs(pairs))
    assert ours.nats_P.tolist() == pytest.approx([nats for nats, _ in theirs], rel=1e-4)
    assert ours.likeliest_P.tolist() == [greedy for _, greedy in theirs]
