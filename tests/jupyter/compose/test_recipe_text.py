"""Recipes as text: the Python shown rebuilds the recipe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import workbench
from workbench import presets
from workbench.choices.choice import registry
from workbench.jupyter.compose.recipe_text import LONGEST, as_json, as_python, read_json
from workbench.jupyter.compose.text_problems import TextError
from workbench.recipes.recipe import AXES, Recipe


def built(text: str) -> Recipe:
    """Return what the shown Python builds, without its last line, which launches."""
    names: dict[str, Any] = {"wb": workbench}
    exec(text.rsplit("run = ", 1)[0].replace("import workbench as wb", ""), names)
    recipe: Recipe = names["recipe"]
    return recipe


def python(recipe: Recipe, base: Recipe, preset: str | None) -> str:
    """The text of one recipe beside another."""
    return as_python(recipe.to_dict(), base.to_dict(), preset)


CHANGES: list[dict[str, Any]] = [
    {},
    {"name": 'a "quoted" name\\', "seed": 3},
    {"optimizer": {"lr": 1e-4}},
    {"optimizer": {"kind": "lans", "lr": 0.01, "schedule": {"kind": "cosine", "warmup": 0.1}}},
    {"optimizer": {"schedule": {"kind": "linear"}, "weight_decay": {"kind": "linear", "start": 0.1}}},
    {"data": {"kind": "files", "paths": ["a b.txt"], "tokenizer": {"kind": "pretrained", "name": "x"}}},
    {"data": {"tokenizer": {"vocabulary_size": 640}}, "budget": "90 s"},
    {"architecture": {"ffn_width": 64}, "execution": {"compile": False, "threads": 1}},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("preset", ["bert_tiny", "lans"])
def test_the_python_shown_builds_the_recipe(preset: str, change: dict[str, Any]) -> None:
    base = presets.get(preset)
    recipe = base.with_(**change)
    assert built(python(recipe, base, preset)) == recipe
    assert built(python(recipe, base, None)) == recipe


NAMES = presets.names()


@pytest.mark.parametrize("here", NAMES)
@pytest.mark.parametrize("step", [0, 1, len(NAMES) // 2])
def test_between_two_presets(here: str, step: int) -> None:
    """Itself, the next one, and one far away."""
    there = NAMES[(NAMES.index(here) + step) % len(NAMES)]
    assert built(python(presets.get(here), presets.get(there), there)) == presets.get(here)


@pytest.mark.parametrize("axis", AXES)
def test_every_registered_choice_can_be_said(axis: str) -> None:
    base = presets.get("bert_tiny")
    for choice in registry(axis).values():
        if not any(info.is_required() for info in choice.model_fields.values()):
            recipe = base.with_(**{axis: choice()})
            assert built(python(recipe, base, "bert_tiny")) == recipe


def test_json_is_what_a_run_s_folder_holds(tmp_path: Path) -> None:
    recipe = presets.get("pld").with_(notes='ä "quoted"')
    assert as_json(recipe.to_dict()) == recipe.save(tmp_path / "recipe.json").read_text(encoding="utf-8")
    assert json.loads(as_json(recipe.to_dict())) == recipe.to_dict()


def test_a_recipe_that_cannot_run_has_a_text_too() -> None:
    base = presets.get("fast").to_dict()
    broken = {**base, "architecture": {**base["architecture"], "heads": 3}, "optimizer": {"kind": "lans", "lr": "many"}}
    assert "'heads': 3" in as_python(broken, base, "fast")
    assert "'lr': 'many'" in as_python(broken, base, "fast")
    assert json.loads(as_json(broken)) == broken


def lines(text: str) -> list[tuple[int, str]]:
    """Return the problems of a text that holds no recipe."""
    with pytest.raises(TextError) as caught:
        read_json(text)
    return [tuple(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_comes_back(name: str) -> None:
    assert read_json(as_json(presets.get(name).to_dict())) == presets.get(name)


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ('"evaluations": 8,', '"evaluations": 8', "not JSON: Expecting ',' delimiter"),
        ('"seed": 0', '"seed": -1', "seed: "),
        ('"heads": 4,', '"heads": 3,', "architecture.heads: 3 heads do not divide"),
        ('"vocabulary_size": 4096', '"vocabulary_size": "many"', "data.tokenizer.vocabulary_size: "),
        ('"kind": "adamw"', '"kind": "adamm"', "did you mean 'adamw'?"),
        ('"lowercase": ', '"lowercased": ', "did you mean 'lowercase'?"),
    ],
)
@pytest.mark.parametrize("lead", ["", "\n \n"])
def test_json_errors_name_the_line(old: str, new: str, part: str, lead: str) -> None:
    text = lead + as_json(presets.get("fast").to_dict())
    assert text.count(old) == 1
    line = text[: text.index(old)].count("\n") + 1
    problems = lines(text.replace(old, new))
    # A missing comma is noticed where the next word stands.
    assert [where for where, message in problems if part in message] == [line + ("delimiter" in part)], problems


@pytest.mark.parametrize(
    "text", ["", "[]", "3", "null", json.dumps({"schema_version": 99}), "{" * 100_000, " " * (LONGEST + 1)]
)
def test_json_that_is_no_recipe(text: str) -> None:
    assert lines(text)[0][0] == 1
