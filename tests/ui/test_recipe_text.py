"""Recipes as text: the Python shown rebuilds the recipe."""

from __future__ import annotations

import json
from typing import Any

import pytest

import workbench
from workbench import presets
from workbench.choices.choice import registry
from workbench.recipe import AXES, Recipe
from workbench.ui.recipe_text import as_difference, as_python


def built(text: str) -> Recipe:
    """What the shown Python builds, without its last line, which launches."""
    names: dict[str, Any] = {"wb": workbench}
    exec(text.rsplit("run = ", 1)[0].replace("import workbench as wb", ""), names)
    recipe: Recipe = names["recipe"]
    return recipe


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
    assert built(as_python(recipe, base, preset)) == recipe
    assert built(as_python(recipe, base, None)) == recipe


@pytest.mark.parametrize("here", presets.names())
@pytest.mark.parametrize("there", presets.names())
def test_between_any_two_presets(here: str, there: str) -> None:
    assert built(as_python(presets.get(here), presets.get(there), there)) == presets.get(here)


@pytest.mark.parametrize("axis", AXES)
def test_every_registered_choice_can_be_said(axis: str) -> None:
    base = presets.get("bert_tiny")
    for choice in registry(axis).values():
        if not any(info.is_required() for info in choice.model_fields.values()):
            recipe = base.with_(**{axis: choice()})
            assert built(as_python(recipe, base, "bert_tiny")) == recipe


def test_the_difference_names_paths_and_both_values() -> None:
    base = presets.get("bert_tiny")
    assert as_difference(base, base) == "no difference from the preset"
    text = as_difference(base.with_(optimizer={"lr": 0.5}), base)
    assert text.split() == ["optimizer.lr", f"{base.optimizer.lr}", "->", "0.5"]
    assert json.loads(base.to_json()) == base.to_dict()
