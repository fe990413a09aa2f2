"""Edits: any order gives the same recipe, another kind keeps what its axis shares, nothing is dropped silently."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from workbench import presets
from workbench.base.errors import RecipeError
from workbench.choices.choice import registry
from workbench.choices.data import Files
from workbench.choices.edits import DEEPEST, defaults, edit
from workbench.choices.optimizers import AdamW, Lans
from workbench.choices.progress import Budget
from workbench.recipes.recipe import AXES, Recipe

SHARED_BY_DATA = (
    "tokenizer", "sequence_length", "length_step", "batch_size", "batch_rule", "heldout_fraction", "steps", "order",
    "tokens_limit",
)  # fmt: skip


@pytest.mark.parametrize("preset", ["fast", "gpt_tiny", "length_warmup"])
def test_another_source_of_text_keeps_tokenizer_rows_and_batch(preset: str) -> None:
    before = presets.get(preset).with_(data={"heldout_fraction": 0.2, "packages": ["json"]})
    after = before.with_(data={"kind": "files", "paths": ["x"]})
    assert isinstance(after.data, Files)
    for name in SHARED_BY_DATA:
        assert getattr(after.data, name) == getattr(before.data, name), name
    assert set(SHARED_BY_DATA) == set(Files.shared_knobs(type(before.data))), "every knob of the base is compared"


EDITS = ["data.kind=files", 'data.paths=["x"]', "data.batch_size=24", "optimizer.lr=0.5", "optimizer=lans",
         "optimizer.schedule.hold=0.25", "optimizer.schedule=warmup_hold_decay"]  # fmt: skip


def test_several_assignments_are_one_change_in_any_order() -> None:
    recipes = {presets.fast().with_assignments(order) for order in itertools.islice(itertools.permutations(EDITS), 300)}
    (recipe,) = recipes
    assert (recipe.data.kind, recipe.data.paths, recipe.data.batch_size) == ("files", ("x",), 24)
    assert (recipe.optimizer.kind, recipe.optimizer.lr, recipe.optimizer.schedule.hold) == ("lans", 0.5, 0.25)
    assert recipe == presets.fast().with_assignments(reversed(EDITS))


def test_of_two_values_for_one_knob_the_later_counts() -> None:
    assert presets.fast().with_assignments(["seed=1", "seed=2"]).seed == 2
    assert presets.fast().edited([("budget.amount", 7), ("budget", "9 steps")]).budget.amount == 9


def test_a_budget_in_words_is_an_edit_of_its_amount() -> None:
    before = presets.fast().with_(budget={"checkpoint_seconds": 1, "evaluations": 3})
    after = before.with_(budget="90 s").budget
    assert after == Budget(amount=90, unit="seconds", checkpoint_seconds=1, evaluations=3)
    assert presets.fast().with_assignments(["budget.checkpoint_seconds=1", "budget=400 steps"]).budget == Budget(
        amount=400, checkpoint_seconds=1
    )


def test_a_kind_keeps_no_knob_that_it_declares_anew() -> None:
    before = presets.fast().with_(optimizer={"lr": 0.07, "weight_decay": 0.3, "clip_norm": 7})
    after = before.with_(optimizer="lans").optimizer
    assert after == Lans(weight_decay=0.3)
    assert set(Lans.shared_knobs(AdamW)) == {"average", "combine", "weight_decay"}
    assert before.with_(optimizer=Lans()).optimizer == Lans(), "a choice of one's own says every knob"


def test_a_shape_takes_no_unit_from_another() -> None:
    # Lengths counted in steps would become lengths of one step.
    before = presets.fast().with_(optimizer={"schedule": {"kind": "linear", "over": "steps", "length": 100}})
    assert before.with_(**{"optimizer.schedule": "cosine"}).optimizer.schedule.over == "budget"


@pytest.mark.parametrize("axis", AXES)
def test_every_kind_of_an_axis_takes_over_what_it_shares(axis: str) -> None:
    for (first, one), (second, two) in itertools.permutations(registry(axis).items(), 2):
        needed = {n: ["x"] if n == "paths" else "x" for n, info in two.model_fields.items() if info.is_required()}
        shared = two.shared_knobs(one)
        assert set(shared) <= one.model_fields.keys() & two.model_fields.keys()
        fields = Recipe().to_dict()
        fields[axis] = {"kind": first, **defaults(one)}
        edit(Recipe, fields, [(axis, {"kind": second, **needed})])
        assert fields[axis]["kind"] == second
        assert {name: fields[axis][name] for name in shared} == {name: defaults(one)[name] for name in shared}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": {1: 2}}, "data: knobs are named by texts, got 1"),
        ({".".join("a" * (DEEPEST + 1)): 1}, "nested deeper than any recipe is"),
        ({"seed.kind": "linear"}, "seed is 0, which has no knobs"),
        ({"data.kind": "fils", "data.tokenizer.vocabulary_size": 512}, r"^data\.kind: unknown value 'fils'"),
        ({"data.tokeniser.vocabulary_size": 512}, r"^data\.tokeniser: unknown knob .*did you mean 'tokenizer'"),
    ],
)
def test_edits_that_lead_nowhere(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        presets.fast().with_(**change)
