"""Decisions from trials whose times are given: which knobs a plan takes, and what it says of the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch

from workbench.autotune.decisions import COMPILED_SHARE, plan_of
from workbench.choices.execution.autotune import Plan, Trial
from workbench.choices.execution.memory_fit import Kept
from workbench.recipes.recipe import Recipe

MIB = 2.0**20


class Timed:
    """Trials of a machine on which every knob costs what is written here; together, the product of it.

    Args:
        times: of a step as a multiple of the defaults', by (knob, value) or by the names of several knobs.
        refused: knobs that this recipe cannot have.
    """

    def __init__(
        self, recipe: Recipe, times: Mapping[Any, float], *, refused: tuple[str, ...] = (), seconds: float = 60.0,
        others: float = 0.0, eager: float | None = None,
    ) -> None:  # fmt: skip
        self.recipe, self.device, self.threads, self.rows = recipe, torch.device("cpu"), 4, 32
        self.seconds_left, self.others, self.least_seconds = seconds, others, 0.5
        self._times, self._refused, self._eager = times, refused, eager

    def refusal(self, knobs: Mapping[str, Any]) -> str:
        return next((f"no {knob} here" for knob in knobs if knob in self._refused), "")

    def time(self, knobs: Mapping[str, Any], seconds: float) -> float:
        if (given := self._times.get(tuple(knobs))) is not None and len(knobs) > 1:
            return given
        product = 1.0
        for item in knobs.items():
            product *= self._times.get(item, 1.2)
        return product

    def kept(self, knobs: Mapping[str, Any]) -> tuple[Kept, int]:
        share = {"layers": 0.1, "operations": 0.5}.get(str(knobs.get("recompute")), 1.0)
        return Kept(0.0, 12 * share * 64 * MIB, (share * 64 * MIB,) * 12), 1 << 20

    def eager_seconds(self) -> float | None:
        return self._eager


@pytest.fixture
def auto() -> Recipe:
    return Recipe(execution="auto", data={"kind": "embedded", "batch_size": 32, "sequence_length": 128})


@pytest.fixture
def lean() -> Recipe:
    return Recipe(execution="memory", data={"kind": "embedded", "batch_size": 32, "sequence_length": 128})


def plan(recipe: Recipe, times: Mapping[Any, float], **options: Any) -> Plan:
    return plan_of(Timed(recipe, times, **options))  # type: ignore[arg-type]


def eager(times: dict[Any, float]) -> dict[Any, float]:
    """Return what eager trials show where a compiled run takes these times."""
    return {key: 1 + (time - 1) * COMPILED_SHARE for key, time in times.items()}


def row(found: Plan, knob: str, value: object) -> Trial:
    return next(trial for trial in found.trials if (trial.knob, trial.value) == (knob, str(value)))


def test_nothing_better_leaves_the_defaults(auto: Recipe) -> None:
    found = plan(auto, {})
    assert (found.knobs, found.time) == ({}, 1.0)
    assert found.text == "the native engine's defaults, since nothing tried was better"
    assert row(found, "precision", "fp32").why == "slower"
    assert plan(auto, {}, seconds=0.0).text.endswith("since there was no time to try anything")
    assert not any(trial.taken for trial in found.trials if trial.knob != "compile")


def test_a_gain_within_the_noise_is_not_taken(auto: Recipe) -> None:
    assert plan(auto, {("precision", "fp32"): 0.96}).knobs == {}
    found = plan(auto, {("precision", "fp32"): 0.94})
    assert (found.knobs, found.time) == ({"precision": "fp32"}, 0.94)
    assert row(found, "precision", "fp32") == Trial("precision", "fp32", 0.94, None, True, "saves time")


def test_of_one_knob_the_best_value_is_taken(auto: Recipe) -> None:
    assert plan(auto, {("micro_batch_size", 16): 0.9, ("micro_batch_size", 4): 0.8}).knobs == {"micro_batch_size": 4}


def test_two_gains_are_taken_together_if_that_is_better_still(auto: Recipe) -> None:
    alone = {("precision", "fp32"): 0.8, ("threads", 2): 0.7}
    assert plan(auto, alone).knobs == {"precision": "fp32", "threads": 2}
    assert plan(auto, alone).time == pytest.approx(0.56)
    found = plan(auto, alone | {("threads", "precision"): 0.75})
    assert (found.knobs, found.time) == ({"threads": 2}, 0.7)
    assert [trial.taken for trial in found.trials if " + " in trial.knob] == [False]


def test_what_cannot_be_tried_says_why(auto: Recipe) -> None:
    found = plan(auto, {("precision", "fp32"): 0.5}, refused=("precision",))
    assert found.knobs == {}
    assert row(found, "precision", "fp32").why == "no precision here"
    assert (
        row(plan(auto, {}, seconds=0.4), "precision", "fp32").why
        == "not tried: a trial takes 0 s here, and 0 s were left"
    )


def test_threads_are_not_compared_beside_other_work(auto: Recipe) -> None:
    found = plan(auto, {("threads", 2): 0.5}, others=1.3)
    assert found.knobs == {}
    assert "other processes keep 1.3 cores busy" in row(found, "threads", 2).why


def test_what_the_recipe_fixes_is_not_tried(auto: Recipe) -> None:
    fixed = auto.with_(execution={"threads": 2, "micro_batch_size": 8})
    assert {trial.knob for trial in plan(fixed, {}).trials} == {"precision", "compile"}


@pytest.mark.parametrize(("eager", "compiles"), [(None, True), (15.0, False), (20.0, True)])
def test_compiling_must_pay_within_the_run(auto: Recipe, eager: float | None, compiles: bool) -> None:
    # 24% of the seconds saved, for 4 s of compiling: 17 s are the break-even.
    found = plan(auto, {}, eager=eager)
    assert ("compile" not in found.knobs) is compiles
    assert row(found, "compile", "false").taken is not compiles


def test_the_leanest_within_the_price(lean: Recipe) -> None:
    times = {
        ("recompute", "layers"): 1.3, ("recompute", "operations"): 1.15, ("optimizer_states", "8bit"): 1.1,
        **{("micro_batch_size", rows): 1.0 + 0.2 * (16 / rows) for rows in (16, 8, 4, 2, 1)},
    }  # fmt: skip
    times = eager(times)
    free = plan(lean, times)
    assert free.knobs["recompute"] == "layers"
    assert 1.0 < free.time <= 1.5
    assert free.memory_gib is not None
    assert free.default_gib is not None
    assert free.memory_gib < 0.2 * free.default_gib
    dear = plan(lean.with_(execution={"price": 0.2}), times)
    assert dear.time <= 1.2
    assert dear.memory_gib is not None
    assert free.memory_gib < dear.memory_gib < free.default_gib
    nothing = plan(lean.with_(execution={"price": 0.0}), times)
    assert (nothing.knobs, nothing.time, nothing.memory_gib) == ({}, 1.0, nothing.default_gib)


def test_a_combination_that_turns_out_too_dear_gives_way(lean: Recipe) -> None:
    times = {("recompute", "layers"): 1.2, ("optimizer_states", "8bit"): 1.1, ("recompute", "operations"): 9.0}
    times |= {("micro_batch_size", rows): 9.0 for rows in (16, 8, 4, 2, 1)}
    assert plan(lean, eager(times)).knobs == {"recompute": "layers", "optimizer_states": "8bit"}
    found = plan(lean, eager(times | {("recompute", "optimizer_states"): 1.6}))
    assert found.knobs == {"recompute": "layers"}
    assert row(found, "recompute + optimizer_states", "layers + 8bit").why == "together: above 1.50 times the defaults"


def test_a_plan_survives_json(lean: Recipe) -> None:
    found = plan(lean, {("recompute", "layers"): 1.2})
    assert Plan.read(found.to_dict()) == found
    for damaged in (None, [], {}, {"trials": [{"knob": 1}]}, {"trials": 3}, {**found.to_dict(), "more": 1}):
        assert Plan.read(damaged) is None
