"""Contract of every preparation step: a verdict for each document, always the same, and held-out text stays foreign."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.choices.data.steps.judged import documents_of
from workbench.choices.choice import registry
from workbench.choices.data import Files
from workbench.choices.data.prepare import prepare
from workbench.choices.data.repeats import runs_of
from workbench.choices.data.split import document_hash
from workbench.choices.data.steps import Step

every_step = pytest.mark.parametrize("kind", registry("step"))
ODD = ["a", "日本語のテキスト" * 40, "word " * 500, "tab\tand\r\nbreak\n\n\n", "{}", "😀 \u200b", "9" * 400]


@pytest.fixture(autouse=True)
def evaluation_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sentences) -> None:
    """A step may compare with evaluation sets: two texts of the corpus and one that is foreign."""
    folder = tmp_path / "sets"
    folder.mkdir()
    (folder / "items.txt").write_text("\n\n".join([*sentences(2), "foreign " * 20]))
    monkeypatch.setenv("WORKBENCH_EVAL", str(folder))


def step_of(kind: str) -> Step:
    return registry("step")[kind].model_validate({"kind": kind})


@every_step
def test_a_verdict_for_each_document_in_order_and_always_the_same(kind: str, sentences) -> None:
    documents = documents_of([*sentences(120), *ODD, *sentences(20)], first=5)
    step = step_of(kind)
    verdicts = list(step.judge(documents))
    assert [verdict.document for verdict in verdicts] == documents
    assert list(step.judge(documents)) == verdicts
    for verdict in verdicts:
        changed = verdict.text != verdict.document.text
        assert verdict.removed or bool(verdict.changes) == changed, "a change is named, and only a change"
        assert verdict.removed or verdict.text.strip()
        assert verdict.removed or not verdict.detail


@every_step
def test_what_decides_the_verdicts_is_json_and_nothing_is_judged_without_documents(kind: str) -> None:
    step = step_of(kind)
    assert json.loads(json.dumps(step.key())) == step.key()
    assert not list(step.problems_here())
    if kind != "compressibility":  # a tokenizer that learns needs text
        assert list(step.judge([])) == []


@every_step
def test_held_out_text_is_foreign_after_every_step(kind: str, tmp_path: Path, sentences) -> None:
    texts = [f"{text.capitalize()}." for text in sentences(400)]
    # Copies and near copies, whose members would else stand on both sides.
    texts += texts[:40] + [f"{text} Indeed." for text in texts[40:80]]
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    small = {"tokenizer": {"kind": "trained", "vocabulary_size": 256}, "sequence_length": 16, "batch_size": 2}
    loose = {"fewest_words": 5, "most_in_top_phrases": []} if kind == "gopher_rules" else {}
    loose |= (
        {"fewest_sentences": 1} if kind == "c4_rules" else {"most_tokens": 0.6} if kind == "compressibility" else {}
    )
    data = Files(paths=(str(path),), steps=({"kind": kind, **loose},), heldout_fraction=0.2, **small)
    prepared = prepare(data, lambda line: None)
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(prepared.tokenizer_file)
    sides = []
    for store in (prepared.train, prepared.heldout):
        bounds = zip(store.offsets_D1[:-1].tolist(), store.offsets_D1[1:].tolist(), strict=True)
        sides.append([tokenizer.decode(store.ids_N[begin:end].tolist()) for begin, end in bounds])
    training, heldout = sides
    assert len(training) > 100
    assert len(heldout) > 20
    assert not {*map(document_hash, training)} & {*map(document_hash, heldout)}
    shared = {*runs_of(training).hash_G.tolist()} & {*runs_of(heldout).hash_G.tolist()}
    assert not shared
    assert prepared.fingerprint["heldout_overlap"] == 0
    assert prepared.fingerprint["preparation"][0]["kind"] == kind
