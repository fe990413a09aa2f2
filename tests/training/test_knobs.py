"""Which knobs turn while a run trains: those that are read anew at every step, and no other."""

from __future__ import annotations

import json

import pytest

from workbench.changes import turnable
from workbench.choices.choice import registry
from workbench.errors import RecipeError, RunError
from workbench.recipe import Recipe
from workbench.training.knobs import settable, turned


@pytest.mark.parametrize("axis", ["optimizer", "objective", "depth"])
def test_every_knob_called_turnable_exists(axis: str) -> None:
    for kind in registry(axis):
        recipe = Recipe(**{axis: kind})
        paths = turnable(recipe)
        assert paths == sorted(set(paths))
        for path in paths:
            name, knob = path.split(".")
            assert knob in type(getattr(recipe, name)).model_fields, path


def test_a_turned_knob_changes_nothing_else() -> None:
    recipe = Recipe()
    assert recipe.diff(turned(recipe, "optimizer.lr", 5e-4)) == {"optimizer.lr": (1e-3, 5e-4)}
    lengthened = turned(recipe, "optimizer.schedule.warmup", 0.25)
    assert list(recipe.diff(lengthened)) == ["optimizer.schedule.warmup"]


def test_a_scheduled_knob_takes_a_shape() -> None:
    recipe = turned(Recipe(), "objective.mask_rate", {"kind": "linear", "start": 0.4, "end": 0.2})
    assert recipe.objective.mask_rate.end == 0.2
    with pytest.raises(RecipeError, match=r"objective\.mask_rate"):
        turned(Recipe(), "objective.mask_rate", {"kind": "linear", "start": 1.4, "end": 0.2})


def test_batch_and_length_turn_as_far_as_the_model_was_built() -> None:
    ramp = turned(Recipe(), "data.batch_size", {"kind": "linear", "start": 8, "end": 64})
    assert ramp.data.most_rows == 64
    short = turned(Recipe(), "data.sequence_length", 64)
    assert short.data.longest == 64
    # Back up again: what counts is what the model was built for.
    assert turned(short, "data.sequence_length", 128, longest=128).data.longest == 128
    with pytest.raises(RunError, match=r"rows of 256 tokens do not fit the model of this run, which was built for 128"):
        turned(short, "data.sequence_length", 256, longest=128)


def test_a_rule_that_moves_the_batch_itself_leaves_no_knob_to_turn() -> None:
    recipe = Recipe().with_(data={"batch_rule": "simigrad"})
    assert "data.batch_size" not in turnable(recipe)
    assert "data.sequence_length" in turnable(recipe)


@pytest.mark.parametrize("path", ["architecture.layers", "optimizer.beta1", "data.tokenizer", "optimizer", "seed"])
def test_what_is_built_in_is_refused_with_the_legal_ones(path: str) -> None:
    with pytest.raises(RunError, match=r"knob of a running run.*legal: .*optimizer\.lr.*launch a changed recipe"):
        turned(Recipe(), path, 1)


def test_the_nearest_is_named() -> None:
    with pytest.raises(RunError, match=r"unknown value 'optimiser\.lr'; did you mean 'optimizer\.lr'\?"):
        turned(Recipe(), "optimiser.lr", 1e-3)


def test_what_can_be_set_is_told_with_its_present_value_and_bounds() -> None:
    recipe = Recipe(
        optimizer={"kind": "adamw", "lr": 3e-3},
        objective={"kind": "masked", "mask_rate": {"kind": "linear", "start": 0.3, "end": 0.15}},
        depth={"kind": "progressive_drop"},
    )
    knobs = {knob["path"]: knob for knob in settable(recipe, 64)}
    assert [path for path in knobs if path.count(".") == 1] == turnable(recipe)
    assert json.loads(json.dumps(knobs)) == knobs, "plain data"
    assert knobs["optimizer.lr"] == {
        "path": "optimizer.lr", "value": 3e-3, "help": "peak learning rate", "unit": "", "scale": "log",
        "types": ["number"], "exclusiveMinimum": 0, "maximum": 100,
    }  # fmt: skip
    assert knobs["depth.gamma"]["types"] == ["number", "null"]
    assert knobs["depth.rescale"]["types"] == ["boolean"]
    rate = knobs["objective.mask_rate"]
    assert (rate["types"], rate["value"]["kind"], rate["exclusiveMaximum"]) == (["number", "schedule"], "linear", 1)
    assert knobs["objective.mask_rate.start"]["value"] == 0.3, "and the knobs of the schedule it follows"
    assert knobs["objective.mask_rate.over"]["options"] == ["budget", "steps", "tokens", "seconds"]
    length = knobs["data.sequence_length"]
    assert (length["unit"], length["maximum"]) == ("tokens", 64), "no longer than the model was built for"


@pytest.mark.parametrize("axis", ["optimizer", "objective", "depth"])
def test_every_knob_that_is_told_can_be_turned_to_its_present_value(axis: str) -> None:
    for kind in registry(axis):
        recipe = Recipe(**{axis: kind})
        for knob in settable(recipe):
            assert turned(recipe, knob["path"], knob["value"]) == recipe, knob
            assert set(knob["types"]) <= {"number", "integer", "boolean", "string", "array", "null", "schedule"}, knob
