"""Words at a [MASK] and continuations against loops over the head, in this process and in the one beside it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from tests.scoring.test_reader import probabilities, reader
from workbench.base.errors import RunError
from workbench.choices.objectives.masked import Masked
from workbench.cli import main
from workbench.client import asking
from workbench.client.run import Run
from workbench.scoring.ask import MOST_MODELS, Models, drawn, fill, generate
from workbench.scoring.reader import Reader

__all__ = ["reader"]
pytestmark = pytest.mark.process
masked = pytest.mark.parametrize("run", ["masked"], indirect=True)
causal = pytest.mark.parametrize("run", ["causal"], indirect=True)
TEXT = "the [MASK] of the house"


@masked
def test_words_at_a_mask_are_the_likeliest_of_the_head(run: Run, reader: Reader) -> None:
    vocabulary = reader.vocabulary
    before = (vocabulary.cls, *reader.ids("the"))
    row = (*before, vocabulary.mask, *reader.ids(" of the house"), vocabulary.sep)
    said = probabilities(reader, row)[len(before)].exp()
    said[[*vocabulary.special, vocabulary.unk, *range(vocabulary.used, vocabulary.size)]] = 0
    best = said.topk(5)
    found = fill(Models(), run.folder, TEXT)
    assert [word for word, _ in found["words"]] == [reader.tokenizer.decode([token]) for token in best.indices.tolist()]
    assert [chance for _, chance in found["words"]] == pytest.approx(best.values.tolist(), rel=1e-4)
    assert found["step"] == 6


@causal
def test_a_continuation_takes_the_likeliest_token_in_turn(run: Run, reader: Reader) -> None:
    vocabulary, row = reader.vocabulary, [reader.vocabulary.cls, *reader.ids("the house")]
    never = [vocabulary.cls, vocabulary.mask, vocabulary.pad, vocabulary.unk, *range(vocabulary.used, vocabulary.size)]
    # More than a row: the oldest tokens go.
    for _ in range(40):
        said = probabilities(reader, tuple(row[-reader.longest :]))[-1]
        said[never] = -torch.inf
        if int(said.argmax()) == vocabulary.sep:
            break
        row.append(int(said.argmax()))
    found = generate(Models(), run.folder, "the house", tokens=40, temperature=0)
    assert "the house" + found["text"] == reader.tokenizer.decode(row)
    drawn_twice = [generate(Models(), run.folder, "the", 8, 1.0, 0, seed)["text"] for seed in (1, 1, 2)]
    assert drawn_twice[0] == drawn_twice[1] != drawn_twice[2]


def test_draws_follow_the_probabilities_among_the_likeliest() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.2]])).expand(4000, -1)
    generator = torch.Generator().manual_seed(0)
    counts = drawn(logits, 1.0, 2, generator).bincount(minlength=3) / 4000
    assert counts.tolist() == pytest.approx([0.625, 0.375, 0], abs=0.03)
    cold = drawn(logits, 0.5, 0, generator).bincount(minlength=3) / 4000
    assert cold.tolist() == pytest.approx([0.25 / 0.38, 0.09 / 0.38, 0.04 / 0.38], abs=0.03)


@masked
def test_a_row_is_unmasked_with_the_surest_place_first(
    run: Run, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RunError, match=r"objective 'masked' continues no text: it fills a \[MASK\]"):
        generate(Models(), run.folder, "the")
    monkeypatch.setattr(Masked, "generates", "unmask")
    found = generate(Models(), run.folder, "the", tokens=4, temperature=0)
    vocabulary, prompt = reader.vocabulary, reader.ids("the")
    row = [vocabulary.cls, *prompt, *[vocabulary.mask] * 4, vocabulary.sep]
    said = probabilities(reader, tuple(row)).exp()
    said[:, [*vocabulary.special, vocabulary.unk, *range(vocabulary.used, vocabulary.size)]] = 0
    places = range(1 + len(prompt), 5 + len(prompt))
    surest = max(places, key=lambda place: (said[place] / said[place].sum()).max().item())
    row[surest] = int(said[surest].argmax())
    assert found["steps"][0] == reader.tokenizer.decode(row[places[0] : -1], skip_special_tokens=False)
    assert [text.count("[MASK]") for text in found["steps"]] == [3, 2, 1, 0]


@masked
def test_what_cannot_be_filled_says_why(run: Run, tmp_path: Path) -> None:
    for text, why in (("no mask", r"the text has no \[MASK\]: write one"), ("[MASK] [MASK]", r"has 2 \[MASK\]"),
                      ("word " * 40 + "[MASK]", "rows of this model 32")):  # fmt: skip
        with pytest.raises(RunError, match=why):
            fill(Models(), run.folder, text)
    bare = tmp_path / run.id
    shutil.copytree(run.folder.path, bare, ignore=shutil.ignore_patterns("checkpoints"))
    with pytest.raises(RunError, match="left no checkpoint"):
        asking.fill(bare, TEXT)
    with pytest.raises(RunError, match="no checkpoint of step 5"):
        asking.fill(run, TEXT, step=5)


@causal
def test_what_cannot_be_continued_says_why(run: Run) -> None:
    models = Models()
    with pytest.raises(RunError, match="tokens with its frame, and rows of this model 32; shorten it"):
        generate(models, run.folder, "word " * 40)
    with pytest.raises(RunError, match="temperature -1"):
        generate(models, run.folder, "word", temperature=-1)
    with pytest.raises(RunError, match="reads a text from the left alone"):
        fill(models, run.folder, TEXT)


@masked
def test_one_process_beside_this_one_answers_and_loads_a_model_once(run: Run) -> None:
    found = asking.fill(run, TEXT, top=3)
    assert len(found.words) == 3
    process = asking._BESIDE._process
    assert asking.fill(run, TEXT, top=3) == found
    assert process is not None
    assert asking._BESIDE._process is process
    assert str(found).startswith(f"{TEXT}   (step 6)")
    process.kill()
    process.wait()
    assert asking.fill(run, TEXT, top=3) == found, "another is started"


@masked
def test_few_models_stay_loaded(run: Run, tmp_path: Path) -> None:
    models = Models()
    for number in range(MOST_MODELS + 1):
        copy = tmp_path / f"{run.id}-{number}"
        copy.symlink_to(run.folder.path)
        models.at(type(run.folder)(copy))
    assert len(models._loaded) == MOST_MODELS


@pytest.mark.parametrize(
    ("run", "verb", "said"), [("masked", ["fill", TEXT], "words"), ("causal", ["generate", "the"], "text")],
    indirect=["run"],
)  # fmt: skip
def test_the_commands_answer(run: Run, verb: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = [verb[0], str(run.folder.path), *verb[1:]]
    assert main([*command, "--json"]) == 0
    assert said in json.loads(capsys.readouterr().out)
    assert main(command) == 0
    assert verb[1] in capsys.readouterr().out
    assert main([*command, "--step", "5"]) == 2
