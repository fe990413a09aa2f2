"""What may change while a run trains, and in a fork: all else is refused with the list of what may."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from workbench.base.errors import RecipeError, RunError
from workbench.choices.choice import registry
from workbench.choices.progress import progress_at
from workbench.recipes.changes import fork, jumps, settable, turnable, turned
from workbench.recipes.recipe import Recipe

SAVED = {"step": 60, "tokens": 60_000, "seconds": 6.0, "overrides": {}, "growth": {"stage": 0}}


def test_without_changes_only_the_name_differs() -> None:
    made = fork(Recipe(name="mine"), SAVED, {})
    assert made.diff == {"name": ("mine", "mine fork 60")}
    assert made.recipe.hash == Recipe().hash
    assert (made.overrides, made.fresh) == ({}, ())
    assert fork(Recipe(), SAVED, {"name": "other"}).recipe.name == "other"
    assert len(fork(Recipe(name="x" * 80), SAVED, {}).recipe.name) <= 80
    assert fork(Recipe(name="mine"), SAVED, {}, "renamed").recipe.name == "renamed fork 60"


def test_knobs_turned_before_the_checkpoint_stay_turned() -> None:
    made = fork(
        Recipe(), SAVED | {"overrides": {"optimizer.lr": 5e-4, "optimizer.clip_norm": 2.0}}, {"optimizer.lr": 2e-4}
    )
    assert made.recipe.optimizer.clip_norm == 2.0
    assert made.diff["optimizer.lr"] == (5e-4, 2e-4)
    assert made.overrides == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"architecture.layers": 8},
        {"architecture": "post_ln"},
        {"data.tokenizer.vocabulary_size": 4096},
        {"data.heldout_fraction": 0.1},
        {"objective": "causal"},
        {"depth": "stacking"},
    ],
)
def test_what_the_checkpoint_is_made_of_cannot_change(changes: dict[str, Any]) -> None:
    with pytest.raises(RecipeError, match=r"cannot change .*It can change budget, .*depth.*optimizer, seed; for"):
        fork(Recipe(), SAVED, changes)


def test_every_knob_that_turns_can_change_in_a_fork() -> None:
    for axis in ("depth", "optimizer", "objective"):
        for kind in registry(axis):
            recipe = Recipe(**{axis: kind})
            for path in turnable(recipe):
                name, knob = path.split(".")
                value = recipe.to_dict()[name][knob]
                assert fork(recipe, SAVED, {path: value}).fresh == ()


def test_the_optimizer_keeps_its_state_unless_something_built_in_changes() -> None:
    turned = fork(Recipe(), SAVED, {"optimizer": {"lr": 1e-4, "clip_norm": None, "schedule": "cosine"}})
    assert turned.fresh == ()
    assert fork(Recipe(), SAVED, {"optimizer.beta1": 0.8}).fresh == ("optimizer.beta1",)
    assert "optimizer.kind" in fork(Recipe(), SAVED, {"optimizer": "lans"}).fresh


def test_a_depth_method_without_stages_may_begin_in_the_middle() -> None:
    assert fork(Recipe(), SAVED, {"depth": {"kind": "progressive_drop", "theta": 0.6}}).recipe.depth.theta == 0.6
    with pytest.raises(RecipeError, match=r"cannot change depth\.kind"):
        fork(Recipe(depth="stacking"), SAVED, {"depth": "full"})


def test_a_budget_counts_what_is_done() -> None:
    budget = {"amount": 100, "unit": "steps", "evaluations": 3}
    made = fork(Recipe(budget=budget), SAVED, {"budget": "9 s"})
    assert (made.recipe.budget.unit, made.recipe.budget.amount, made.recipe.budget.evaluations) == ("seconds", 9.0, 3)
    for spent in ("60 steps", "50k tokens", "6 s"):
        with pytest.raises(RecipeError, match="spent already: the checkpoint stands at 60 steps, 60,000 tokens"):
            fork(Recipe(budget=budget), SAVED, {"budget": spent})
    with pytest.raises(RecipeError, match="not a number and a unit"):
        fork(Recipe(), SAVED, {"budget": "much"})


@pytest.mark.parametrize("typed", ["5 s", "114.7 s", "114.75 s", "20k tokens", "1 steps", "1475 steps"])
@pytest.mark.parametrize("depth", ["full", "stacking"])
def test_a_budget_that_is_advised_is_accepted(typed: str, depth: str) -> None:
    recipe = Recipe(depth=depth, architecture={"kind": "pre_ln", "layers": 4}, budget="150 s")
    stage = len(recipe.depth.starts()) - 1
    saved = SAVED | {"step": 1475, "tokens": 755_200, "seconds": 114.7, "growth": {"stage": stage}}
    with pytest.raises(RecipeError) as refused:
        fork(recipe, saved, {"budget": typed})
    advised = re.search(r"a larger budget, as '([^']+)'", str(refused.value))
    assert advised is not None
    made = fork(recipe, saved, {"budget": advised[1]}).recipe.budget
    assert made.amount > saved[made.unit.removesuffix("s") if made.unit == "steps" else made.unit]
    if typed == "5 s" and depth == "full":
        assert str(made) == "120 seconds", "what was asked for, beyond the 114.7 that are spent"


def test_no_budget_undoes_a_stage() -> None:
    recipe = Recipe(depth="stacking", architecture={"kind": "pre_ln", "layers": 4}, budget="100 steps")
    at_end = SAVED | {"step": 99, "growth": {"stage": len(recipe.depth.starts()) - 1}}
    assert fork(recipe, at_end, {}).recipe == recipe.with_(name="recipe fork 99")
    with pytest.raises(RecipeError, match="back into stage 1 of depth 'stacking'"):
        fork(recipe, at_end, {"budget": "100000 steps"})


def test_rows_become_shorter_as_a_turned_knob_and_never_longer() -> None:
    made = fork(Recipe(), SAVED, {"data.sequence_length": 64})
    assert made.recipe.data.longest == Recipe().data.longest, "the model stays the one that was built"
    assert made.overrides == {"data.sequence_length": 64}
    assert made.diff["data.sequence_length"] == (128, 64)
    again = fork(made.recipe, SAVED | {"overrides": made.overrides}, {"data.sequence_length": 128})
    assert (again.recipe.data.longest, again.overrides) == (128, {})
    with pytest.raises(RecipeError, match="rows of 256 tokens do not fit the model of the checkpoint"):
        fork(Recipe(), SAVED, {"data.sequence_length": 256})


def test_a_rule_that_counts_rows_itself_does_not_take_others() -> None:
    rule = Recipe().with_(data={"batch_rule": "simigrad"})
    with pytest.raises(RecipeError, match=r"cannot change data\.batch_size"):
        fork(rule, SAVED, {"data.batch_size": 48})
    assert fork(rule, SAVED, {"data.batch_rule": "as_scheduled", "data.batch_size": 48}).recipe.data.most_rows == 48


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
    with pytest.raises(
        RunError, match=r"^unknown knob of a running run 'optimiser\.lr'; did you mean 'optimizer\.lr'\?"
    ):
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


def test_a_change_far_from_the_present_value_is_named() -> None:
    moving = {"kind": "linear", "start": 0.0, "end": 0.2}
    before = Recipe(optimizer={"kind": "adamw", "lr": 4e-3, "weight_decay": moving})
    at = progress_at(before.budget, 0.5)
    found = jumps(before, before.with_(**{"optimizer.lr": 99, "optimizer.weight_decay": 0.001}), at)
    assert found == [
        "optimizer.lr becomes 24,750 times its present value, 0.004",
        "optimizer.weight_decay becomes a 100th of its present value, 0.1",
    ]
    assert jumps(before, before.with_(**{"optimizer.lr": 0.03, "optimizer.weight_decay": 0.0}), at) == []
