"""Prices worked out by hand, and what plans make of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.forecasting.machine_rates import RATES
from workbench.choices.depth.plan import LayerPlan
from workbench.forecasting.operations import Operation, Part, Trace
from workbench.forecasting.pricing import CALL_SECONDS, FUSED_SHARE, Price, Prices, Seconds, micro_batch_seconds, priced

PRODUCT = Operation("mm", "mm 32 nn", "product", 1, 100, 100, 50, 4000)
ADD = Operation("add", "add 32>32", "other", 0, 0, 0, 0, 10_000)
EXP = Operation("exp", "exp 32>32", "other", 0, 0, 0, 0, 10_000)


def trace_of(part: Part) -> Trace:
    return Trace(part, (part,), (0,), part, part, 8, 0)


def test_operations_cost_their_work_and_their_call() -> None:
    found = priced(trace_of(Part([PRODUCT, ADD, EXP], [ADD])), RATES, fused=False, launched=False).layers[0]
    assert found.forward.products == pytest.approx(1e-4)
    assert found.forward.moving == pytest.approx(1e-6 + 1e-6)
    assert found.forward.calls == pytest.approx(3 * CALL_SECONDS)
    assert found.backward.calls == pytest.approx(CALL_SECONDS)
    assert found.linear == pytest.approx(1e-4)


def test_a_key_that_was_measured_goes_before_its_kind() -> None:
    rates = RATES.model_copy(update={"kernels": RATES.kernels | {"add 32>32": (1e-4, 1e-9)}})
    found = priced(trace_of(Part([PRODUCT, ADD], [])), rates, fused=False, launched=False).layers[0].forward
    assert found == pytest.approx(Seconds(1e-4, 1e-5, 1e-4 + 2 * CALL_SECONDS))


def test_compiled_operations_cost_a_share_of_their_work_and_no_calls() -> None:
    found = priced(trace_of(Part([PRODUCT, ADD, EXP], [])), RATES, fused=True, launched=False)
    assert found.layers[0].forward.moving == pytest.approx(FUSED_SHARE * (1e-6 + 1e-6))
    assert found.layers[0].forward.calls == pytest.approx(CALL_SECONDS)
    assert found.layers[0].backward == Seconds()
    # What precedes the layers is not compiled.
    assert found.shared.forward.calls == pytest.approx(3 * CALL_SECONDS)


def test_launched_calls_hide_behind_work() -> None:
    found = priced(trace_of(Part([PRODUCT], [])), RATES, fused=False, launched=True).layers[0].forward
    assert found.calls == 0.0


def _prices() -> Prices:
    one = Price(Seconds(2.0, 1.0, 0.0), Seconds(4.0, 1.0, 0.0), 2.0)
    nothing = Price(Seconds(), Seconds(), 0.0)
    return Prices(nothing, (one,), (0, 0, 0), one, nothing)


def test_layers_of_different_sorts_cost_what_theirs_costs() -> None:
    prices = _prices()
    cheap = Price(Seconds(1.0, 0.0, 0.0), Seconds(), 0.0)
    prices = replace(prices, layers=(cheap, prices.layers[0]), sorts=(0, 1, 0))
    assert micro_batch_seconds(prices, LayerPlan.full(4)) == 1.0 + 8.0 + 1.0 + 8.0
    assert micro_batch_seconds(prices, replace(LayerPlan.full(4), runs=(True, False, True, True))) == 1.0 + 1.0 + 8.0


def test_layers_cost_what_their_plan_says() -> None:
    full = LayerPlan.full(4)
    assert micro_batch_seconds(_prices(), full) == 4 * 8.0
    dropped = replace(full, runs=(True, False, True, False))
    assert micro_batch_seconds(_prices(), dropped) == 2 * 8.0
    # Below the first that trains: forward only.
    frozen = replace(full, trains=(False, False, True, True))
    assert micro_batch_seconds(_prices(), frozen) == 2 * 3.0 + 2 * 8.0
    # Above it: all but the gradient of its weights.
    between = replace(full, trains=(True, False, True, True))
    assert micro_batch_seconds(_prices(), between) == 6.0 + 3 * 8.0


def test_rows_scale_work_but_not_calls() -> None:
    one = Price(Seconds(1.0, 1.0, 3.0), Seconds(), 0.0)
    nothing = Price(Seconds(), Seconds(), 0.0)
    assert micro_batch_seconds(Prices(nothing, (), (), one, nothing), LayerPlan.full(1), rows=2.0) == 7.0
