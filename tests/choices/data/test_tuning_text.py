"""Tuning text: three parts of a corpus that share nothing, whatever the corpus holds out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.base.errors import RecipeError
from workbench.choices.choice import readable, registry
from workbench.choices.data import Files, TuningText
from workbench.choices.data.prepare import prepare
from workbench.choices.data.split import PART_CHARACTERS, choose_split, is_heldout
from workbench.choices.data.tuning_text import on_own_text, on_tuning_text
from workbench.recipes.recipe import Recipe
from workbench.telemetry.scored_text import OTHER_TEXT, ScoredText

SMALL = {"tokenizer": {"kind": "trained", "vocabulary_size": 256}, "sequence_length": 16, "batch_size": 4}


def written(path: Path, texts: list[str]) -> str:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return str(path)


def sides(data: Files) -> tuple[set[str], set[str], set[str]]:
    """Held out for results, held back for tuning, and left to train on while tuning."""
    own = data.heldout_documents()
    split = choose_split(data.sourced_documents(), data.heldout_fraction)
    results = set(own or (side.text for named in data.sourced_documents() for side in split.sides(*named)
                          if side.heldout))  # fmt: skip
    tuning = on_tuning_text(Recipe(data=data)).data
    return results, set(tuning.heldout_documents()), set(tuning.documents())


@pytest.mark.parametrize("grain", ["document", "part", "own"])
def test_what_results_are_scored_on_is_neither_trained_on_nor_tuned_on(grain: str, tmp_path: Path, sentences) -> None:
    texts = sentences(300)
    files = {"paths": (written(tmp_path / "train.jsonl", texts),), "heldout_fraction": 0.1}
    if grain == "own":
        files["heldout_paths"] = (written(tmp_path / "heldout.jsonl", sentences(20, seed=1)),)
    if grain == "part":
        long = " ".join(sentences(4000))
        assert len(long) > 20 * PART_CHARACTERS
        files["paths"] = (written(tmp_path / "train.jsonl", [long]),)
    results, chosen_on, trained_on = sides(Files(**files, **SMALL))
    assert min(map(len, (results, chosen_on, trained_on))) > 0
    assert len(results | chosen_on | trained_on) == len(results) + len(chosen_on) + len(trained_on), "no text twice"
    if grain == "own":
        assert chosen_on | trained_on == set(texts)
    if grain == "document":
        assert results | chosen_on | trained_on == set(texts)
    characters = [sum(map(len, part)) for part in (chosen_on, trained_on)]
    assert 0.05 < characters[0] / sum(characters) < 0.2


def test_preparation_steps_stay_with_the_corpus(tmp_path: Path, sentences) -> None:
    texts = sentences(300)
    data = {"kind": "files", "paths": [written(tmp_path / "text.jsonl", [*texts, *texts[:50]])], **SMALL}
    recipe = Recipe(data={**data, "heldout_fraction": 0.2, "steps": ["exact_duplicates"]})
    tuned = on_tuning_text(recipe)
    assert (tuned.data.steps, tuned.data.text.steps) == ((), recipe.data.steps)
    assert on_own_text(tuned) == recipe
    read = [*tuned.data.documents(), *tuned.data.heldout_documents()]
    assert len(read) == len(set(read)), "the copies are gone"
    of_results = [text for text in texts if is_heldout(text, 0.2)]
    assert sorted([*read, *of_results]) == sorted(texts)


def test_text_that_is_not_here_is_told_before_a_launch() -> None:
    tuned = on_tuning_text(Recipe(data={"kind": "files", "paths": ["nothere.txt"]}))
    with pytest.raises(RecipeError, match=r"data\.text\.paths: no such file or folder 'nothere\.txt'"):
        tuned.check_text_here()


def test_a_recipe_goes_to_its_tuning_text_and_back(tmp_path: Path, sentences) -> None:
    data = {"kind": "files", "paths": [written(tmp_path / "text.jsonl", sentences(300))], "heldout_fraction": 0.1}
    recipe = Recipe(data={**data, **SMALL})
    tuned = on_tuning_text(recipe)
    assert (tuned.data.kind, tuned.data.most_rows, tuned.data.tokenizer) == ("tuning_text", 4, recipe.data.tokenizer)
    assert Recipe.from_json(tuned.to_json()) == tuned == on_tuning_text(tuned)
    assert on_own_text(tuned) == recipe == on_own_text(recipe)
    faster = tuned.with_(data={"batch_size": 8})
    assert on_own_text(faster) == recipe.with_(data={"batch_size": 8})
    ready, of_results = prepare(tuned.data, print), prepare(recipe.data, print)
    assert ready.heldout.documents > 0
    assert ready.train.tokens < of_results.train.tokens
    assert ScoredText.of(ready.fingerprint).apart(ScoredText.of(of_results.fingerprint)) == OTHER_TEXT


def test_it_is_read_and_never_offered() -> None:
    assert "tuning_text" in readable("data")
    assert "tuning_text" not in registry("data")
    assert TuningText(text={"kind": "files", "paths": ("x",)}).text.kind == "files"
