"""Recipes as text: the Python shown rebuilds the recipe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import workbench
from workbench import presets
from workbench.choices.choice import registry
from workbench.jupyter.compose.recipe_text import as_json, as_python
from workbench.recipes.recipe import AXES, Recipe


def built(text: str) -> Recipe:
    """What the shown Python builds, without its last line, which launches."""
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
