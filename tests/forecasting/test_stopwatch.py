"""Kernels of a real step: each is met once, under the key that it has on meta tensors; lines through readings."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from workbench.forecasting.meta_tensors import MetaTensorMode
from workbench.forecasting.operations import Operation, described
from workbench.forecasting.stopwatch import Reading, Stopwatch, fitted_line, lines
from workbench.ops.timing import clock_of

DEVICE = torch.device("cpu")
ADD = Operation("add", "add 32>32", "other", 0, 0, 0, 0, 8)


def _step(x: torch.Tensor, w: torch.Tensor) -> None:
    y = torch.softmax(x @ w, -1).t().reshape(-1).mul_(2)
    (y.float().square()).sum().backward()


def test_keys_are_those_of_the_same_step_on_meta_tensors() -> None:
    keys: list[str] = []

    class Keys(MetaTensorMode):
        def saw(self, name: str, read: list[torch.Tensor], written: list[torch.Tensor]) -> None:
            keys.append(described(name, read, written)[0])

    x, w = torch.randn(8, 4), torch.randn(4, 6, requires_grad=True)
    watch = Stopwatch(clock_of(DEVICE), lambda: None)
    with watch:
        _step(x, w)
    with Keys():
        given = torch.zeros(8, 4), torch.zeros(4, 6, requires_grad=True)
        keys.clear()
        _step(*given)
    assert [reading.operation.key for reading in watch.readings] == keys
    assert all(reading.seconds > 0 for reading in watch.readings)
    assert {reading.operation.kind for reading in watch.readings} == {"product", "other"}


def test_a_line_is_found_again_and_no_rate_is_negative() -> None:
    drawn = np.random.default_rng(0)
    sizes = [(1.0, float(f), float(a)) for f, a in drawn.uniform(1e3, 1e7, (40, 2))]
    true = (3e-5, 5e-12, 2e-10)
    seconds = [sum(rate * size for rate, size in zip(true, row, strict=True)) for row in sizes]
    assert fitted_line(sizes, seconds) == pytest.approx(true, rel=1e-6)
    # Readings that fall as sizes rise: the call alone is left.
    assert fitted_line([(1.0, 1.0), (1.0, 2.0)], [2.0, 1.0]) == pytest.approx((1.5, 0.0))


def test_lines_agree_with_what_was_read_in_sum_however_it_scatters() -> None:
    drawn = np.random.default_rng(1)
    readings = [
        Reading(ADD._replace(bytes=size), size * 1e-10 * (1 + drawn.exponential()))
        for size in (1 << 14, 1 << 18, 1 << 20)
        for _ in range(30)
    ]
    found = lines(readings)
    assert found.keys() == {"add 32>32", "other"}
    once, per_byte = found["other"]
    assert sum(once + r.operation.bytes * per_byte for r in readings) == pytest.approx(sum(r.seconds for r in readings))
