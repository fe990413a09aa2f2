"""An optimizer of several workers in training, against separate trainings, and in one process and two."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.choices.optimizers.combine.test_adasum import slow_tree
from tests.costs import quick_ones
from tests.forecasting.machine_rates import RATES
from tests.process_group import ProcessGroup, assert_same_training, trained
from workbench.base.errors import RecipeError
from workbench.choices.data.prepare import prepare
from workbench.choices.execution.ranks import Ranks
from workbench.forecasting.forecast import forecast
from workbench.recipes.recipe import Recipe
from workbench.training import checkpoint
from workbench.training.assemble import assemble
from workbench.training.batches import StepShape, step_batch
from workbench.training.loop import Training


@pytest.fixture(scope="module")
def base(tiny: Recipe) -> Recipe:
    """Four workers on 16 rows in 2 micro-batches, without dropout, whose draws differ between processes."""
    return tiny.with_(
        architecture={"dropout": 0.0, "layers": 4},
        execution={"micro_batch_size": 8},
        budget={"amount": 10, "unit": "steps"},
        optimizer={"eps": 1e-5, "combine": {"kind": "adasum", "workers": 4}},
    )


def fields(recipe: Recipe) -> dict[str, Any]:
    return json.loads(recipe.to_json())  # type: ignore[no-any-return]


def test_a_step_is_that_of_separate_trainings_on_their_own_rows(base: Recipe) -> None:
    together = trained(Ranks(), fields(base), 1)
    moves: list[dict[str, torch.Tensor]] = []
    alone = base.with_(optimizer={"combine": "mean"}, execution={"micro_batch_size": None})
    for worker in range(4):
        made = assemble(alone, prepare(alone.data, say=lambda line: None))
        before = {name: weight.clone() for name, weight in checkpoint.model_tensors(made.model)[0].items()}
        training = Training(alone, made)
        rows = step_batch(made.order, 0, StepShape(16, alone.data.longest, 8), Ranks(worker, 4))
        training.batches.next = lambda tokens, shape, rows=rows: rows  # type: ignore[method-assign, misc]
        training.step()
        after = checkpoint.model_tensors(made.model)[0]
        moves.append({name: (after[name] - weight).double() for name, weight in before.items()})
        training.close()
    for name, weight in before.items():
        ours, expected = torch.from_numpy(together["weights"][name]), weight + slow_tree([move[name] for move in moves])
        torch.testing.assert_close(ours.double(), expected, atol=1e-6, rtol=0)


@pytest.fixture(scope="module")
def pair() -> Iterator[ProcessGroup]:
    with ProcessGroup(2) as group:
        yield group


@pytest.mark.process
@pytest.mark.parametrize("changes", quick_ones([{}, {"depth": "stacking"}], {}), ids=str)
def test_two_processes_take_the_steps_of_one_and_go_on_in_one(
    pair: ProcessGroup, base: Recipe, changes: dict[str, Any]
) -> None:
    recipe = base.with_(**changes)
    one = trained(Ranks(), fields(recipe))
    first, second = pair(trained, fields(recipe))
    assert_same_training(first, one, 1e-6)
    assert_same_training(second, first, 0.0)
    assert first["optimizer"].keys() == one["optimizer"].keys(), "whole in the first process"
    assert any(name.endswith(":3") for name in one["optimizer"])
    assert first["told"][-1]["sent_mib"] > 0
    half = pair(trained, fields(recipe), 5)[0]
    on = trained(Ranks(), fields(recipe), 3, half)
    rest = pair(trained, fields(recipe), 2, on)[0]
    losses = half["losses"] + on["losses"] + rest["losses"]
    assert_same_training({"losses": losses, "weights": rest["weights"]}, one, 1e-6)


@pytest.mark.process
@pytest.mark.extended
@pytest.mark.parametrize(
    "changes",
    [
        {"depth": "progressive_drop"}, {"objective": "causal"}, {"objective": "replaced_token"},
        {"optimizer": {"kind": "lamb"}}, {"optimizer": {"kind": "lans"}}, {"optimizer": {"kind": "muon"}},
        {"data": {"order": {"kind": "sharded", "shards": 4}}},
    ],
    ids=str,
)  # fmt: skip
def test_with_other_choices(pair: ProcessGroup, base: Recipe, changes: dict[str, Any]) -> None:
    recipe = base.with_(**changes).with_(optimizer={"combine": {"kind": "adasum", "workers": 4}})
    assert_same_training(pair(trained, fields(recipe))[0], trained(Ranks(), fields(recipe)), 1e-6)


def test_a_new_worker_begins_with_a_copy_of_the_firsts_state(base: Recipe) -> None:
    """A fork of a run that took one step for the whole batch."""
    before = trained(Ranks(), fields(base.with_(optimizer={"combine": "mean"})), 2)
    on = trained(Ranks(), fields(base), 1, before)
    steps = {name.rpartition("/")[2]: float(value) for name, value in on["optimizer"].items() if "/step" in name}
    assert steps == {"step": 3, "step:1": 3, "step:2": 3, "step:3": 3}


def test_the_forecast_counts_states_and_updates_of_all_workers(base: Recipe) -> None:
    plain, ours = (
        forecast(recipe, rates=RATES).memory["optimizer"]
        for recipe in (base.with_(optimizer={"combine": "mean"}), base)
    )
    assert ours == pytest.approx(4 * plain + 4 * plain / 2, rel=0.05), "4 x 2 moments, 1 + 3 copies of the weights"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"optimizer": {"combine": {"workers": 6}}}, "AdaSum combines 1, 2, 4, 8"),
        ({"execution": {"micro_batch_size": 2}}, r"2 rows at a time cannot be shared by 4 workers"),
        ({"execution": {"optimizer_states": "8bit"}}, r"execution\.optimizer_states: '8bit' goes with one step"),
        ({"execution": {"parallel": "zero"}}, r"execution\.parallel: 'zero' goes with one step"),
        ({"execution": {"kind": "auto"}}, r"the engine 'auto' takes one step"),
        ({"data": {"batch_rule": "simigrad"}}, r"data\.batch_rule: compares gradients of the whole batch"),
    ],
)
def test_what_it_cannot_take_is_refused(base: Recipe, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        base.with_(**changes)


def test_processes_that_cannot_carry_the_workers_are_refused(base: Recipe) -> None:
    base.check_together(2)
    with pytest.raises(RecipeError, match=r"3 processes cannot carry 4 workers equally"):
        base.check_together(3)
