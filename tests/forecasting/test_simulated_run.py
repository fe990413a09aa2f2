"""A simulated run: units of budgets, schedules, plans, and what moves which number which way."""

from __future__ import annotations

from typing import Any

import pytest

from tests.forecasting.machine_rates import RATES
from tests.forecasting.test_trace import VOCABULARY
from workbench import presets
from workbench.choices.execution.memory_fit import LOOSE
from workbench.forecasting.simulated_run import POINTS, SimulatedRun, Simulator
from workbench.recipes.recipe import Recipe

SMALL: dict[str, Any] = {
    "data": {"sequence_length": 32, "batch_size": 8},
    "architecture": {"layers": 4, "width": 64, "heads": 2},
    "execution": {"compile": False, "device": "cpu", "threads": 1},
}


def simulated(recipe: Recipe) -> SimulatedRun:
    return Simulator(recipe, VOCABULARY, "plain", RATES).run()


@pytest.fixture
def small() -> Recipe:
    return presets.fast().with_(**SMALL)


def test_budgets_in_any_unit_give_the_same_run(small: Recipe) -> None:
    steps = simulated(small.with_(budget="100 steps"))
    assert steps.steps == pytest.approx(100)
    assert steps.tokens == pytest.approx(100 * 8 * 32)
    tokens = simulated(small.with_(budget=f"{100 * 8 * 32} tokens"))
    assert (tokens.steps, tokens.seconds) == pytest.approx((steps.steps, steps.seconds))
    seconds = simulated(small.with_(budget={"amount": steps.seconds, "unit": "seconds"}))
    assert seconds.seconds == pytest.approx(steps.seconds)
    assert seconds.steps == pytest.approx(100, rel=1e-3)


@pytest.mark.parametrize(
    "change",
    [
        {"architecture": {"width": 128}}, {"architecture": {"layers": 8}}, {"data": {"batch_size": 16}},
        {"data": {"sequence_length": 64}}, {"objective": {"mask_rate": 0.6}}, {"execution": {"micro_batch_size": 2}},
    ],
)  # fmt: skip
def test_more_of_anything_takes_longer(small: Recipe, change: dict[str, Any]) -> None:
    assert simulated(small.with_(**change)).seconds > simulated(small).seconds


def test_what_layers_share_is_counted_in_every_micro_batch(small: Recipe) -> None:
    """Logits of positions alone, once per micro-batch; without them micro-batches leave FLOPs as they are."""
    alone = small.with_(architecture={"positions": "tupe_a"})
    for recipe, times in ((alone, 4), (small, 1)):
        whole, parts = (simulated(recipe.with_(execution={"micro_batch_size": rows})) for rows in (8, 2))
        shared = recipe.architecture.shared_flops(32)
        assert parts.flops - whole.flops == pytest.approx(whole.steps * 3 * (times - 1) * shared, rel=1e-6)


def test_a_head_on_every_position_is_priced(small: Recipe) -> None:
    everywhere = small.with_(execution={"head": "all"})
    assert simulated(everywhere).seconds > simulated(small).seconds
    # Whatever share of them is labelled.
    fewer = everywhere.with_(objective={"mask_rate": 0.05})
    assert simulated(fewer).seconds == pytest.approx(simulated(everywhere).seconds, rel=1e-3)
    assert simulated(small.with_(objective={"mask_rate": 0.05})).seconds < 0.99 * simulated(small).seconds
    # No more useful work.
    assert simulated(everywhere).flops == simulated(small).flops


@pytest.mark.parametrize("kind", ["progressive_drop", "freeze", "stacking", "multi_stage", "raptr", "grow_width"])
def test_depth_methods_take_less_as_their_plan_says(small: Recipe, kind: str) -> None:
    small = small.with_(architecture={"layers": 12}, budget="400 steps")
    full, less = simulated(small), simulated(small.with_(depth=kind))
    assert less.seconds < full.seconds
    assert less.flops < full.flops
    assert less.parameters == full.parameters
    if kind != "grow_width":
        saved = sum(1 - sum(p.forward + p.backward) / 24 for p in less.points)
        assert saved > 0.05 * POINTS


def test_dropped_layers_show_in_the_points(small: Recipe) -> None:
    points = simulated(small.with_(depth={"kind": "progressive_drop", "theta": 0.5, "gamma": 1.0})).points
    assert points[-1].forward[0] > points[-1].forward[-1]
    frozen = simulated(small.with_(depth="freeze")).points[-1]
    assert frozen.forward == [1.0] * 4
    assert frozen.backward[0] == 0.0


def test_batches_and_lengths_follow_their_schedules(small: Recipe) -> None:
    ramp = small.with_(
        data={
            "batch_size": {"kind": "linear", "start": 2, "end": 8},
            "sequence_length": {"kind": "linear", "start": 8, "end": 32},
        },
        budget="100 steps",
    )
    points = simulated(ramp).points
    assert len(points) == POINTS
    assert points[0].shape.tokens < points[-1].shape.tokens
    assert points[0].seconds < points[-1].seconds
    assert points[-1].knobs["data.sequence_length"] == points[-1].shape.length
    # The last point is just below the end, where lengths are rounded down to a multiple of 8.
    full = simulated(small.with_(data={"sequence_length": 24}, budget="100 steps"))
    assert points[-1].seconds == pytest.approx(full.points[-1].seconds, rel=0.15)


def test_curvature_passes_are_paid_for(small: Recipe) -> None:
    often, seldom = (
        simulated(small.with_(optimizer={"kind": "sophia", "curvature_every": n})).seconds for n in (1, 50)
    )
    assert often > 1.5 * seldom


def test_memory_is_that_of_the_largest_step(small: Recipe) -> None:
    ramp = small.with_(data={"batch_size": {"kind": "linear", "start": 1, "end": 8}})
    simulator, constant = (Simulator(r, VOCABULARY, "plain", RATES) for r in (ramp, small))
    assert simulator.memory(simulator.run()).peak == constant.memory(constant.run()).peak


@pytest.mark.parametrize("depth", ["full", "stacking"])
def test_what_a_budget_settles_is_forecast(small: Recipe, depth: str) -> None:
    """Also where most of the layers appear later."""
    small = small.with_(depth=depth, data={"tokenizer": {"vocabulary_size": VOCABULARY.size}})
    whole = Simulator(small, VOCABULARY, "plain", RATES)
    found = whole.memory(whole.run())
    taken = found.weights + found.gradients + found.optimizer
    gib = (taken + LOOSE * 0.7 * (found.activations + found.logits)) / 2**30
    auto = small.with_(execution={"micro_batch_size": "auto", "memory_gib": gib})
    layers = small.with_(execution={"recompute": "budget", "memory_gib": gib})
    cut, again = (Simulator(r, VOCABULARY, "plain", RATES) for r in (auto, layers))
    assert cut.run().points[0].shape.part_rows < whole.run().points[0].shape.part_rows
    assert again.memory_plan.first > 0
    assert again.run().seconds > whole.run().seconds
    assert (whole.refusal, cut.refusal, again.refusal) == ("", "", "")
    little = Simulator(layers.with_(execution={"memory_gib": 1.1 * taken / 2**30}), VOCABULARY, "plain", RATES)
    assert little.memory_plan.first == 4
    assert "beside weights, gradients and optimizer states" in little.refusal


def test_compiling_takes_as_long_whatever_the_depth(small: Recipe) -> None:
    def seconds(**change: Any) -> float:
        simulator = Simulator(small.with_(execution={"compile": True}, **change), VOCABULARY, "plain", RATES)
        return simulator.compile_seconds(simulator.run())

    assert Simulator(small, VOCABULARY, "plain", RATES).compile_seconds(simulated(small)) == 0.0
    constant = seconds(objective={"mask_rate": 0.2})
    # Equal layers share their graphs.
    assert constant == seconds(objective={"mask_rate": 0.2}, architecture={"layers": 12})
    assert seconds(depth="grow_width") > seconds()
