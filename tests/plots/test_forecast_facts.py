"""A forecast in words."""

from __future__ import annotations

import doctest
import math

import pytest

import workbench.plots.forecast_facts as module
from workbench.base.text import duration_words
from workbench.forecasting.forecast import Forecast
from workbench.plots.forecast_facts import (
    NUMBERS,
    assumed,
    at_work,
    bytes_words,
    cost_of,
    doubt,
    moving,
    whole_forecast,
)

from .ahead import FOUND, GIB


def test_examples() -> None:
    assert doctest.testmod(module).failed == 0


def test_what_is_required_is_what_the_engine_gives() -> None:
    assert set(NUMBERS) <= set(Forecast.__dataclass_fields__)
    assert set(FOUND) == set(Forecast.__dataclass_fields__)


@pytest.mark.parametrize(
    "damaged",
    [None, [], "x", {}, {**FOUND, "seconds": "long"}, {**FOUND, "seconds": math.nan}, {**FOUND, "steps": True},
     {name: value for name, value in FOUND.items() if name != "parameters"}, {**FOUND, "flops": -1}],
)  # fmt: skip
def test_what_is_no_forecast_is_none(damaged: object) -> None:
    assert whole_forecast(damaged) is None


def test_a_forecast_from_a_file_may_lack_what_is_not_needed() -> None:
    assert whole_forecast(FOUND) == FOUND
    bare = {name: FOUND[name] for name in NUMBERS}
    least = {**bare, "memory": {}, "notes": [], "compile_seconds": 0.0, "preparation_seconds": 0.0}
    assert whole_forecast(bare) == least
    assert whole_forecast({**bare, "memory": {"weights": "much"}, "notes": 3, "compile_seconds": [2]}) == least
    assert moving(bare) == {}
    assert at_work(bare) is None


def test_words() -> None:
    assert [bytes_words(size) for size in (5000, GIB // 2, 3 * GIB, 139 * GIB)] == [
        "5 KiB", "512 MiB", "3.0 GiB", "139 GiB",
    ]  # fmt: skip
    assert [duration_words(s) for s in (0.25, 59.6, 119.7, 599, 3599, 86_399)] == [
        "0.25 s", "1 min", "2 min", "9 min 59 s", "60 min", "23 h 59 min",
    ]  # fmt: skip


def test_numbers_of_a_forecast() -> None:
    assert cost_of(FOUND, 3.6) == pytest.approx((0.08, 0.1, 0.125))
    assert list(moving(FOUND)) == ["optimizer.lr", "objective.mask_rate"], "what stands still is in the form"
    assert at_work(FOUND) == pytest.approx((0.8, 0.5))
    still = {**FOUND, "schedules": {"progress": [0.5], "optimizer.lr": [0.1], "x.y": [math.inf]}}
    assert list(moving(still)) == ["optimizer.lr"]


def test_what_speaks_against_a_recipe() -> None:
    assert doubt(FOUND) == ""
    assert doubt({**FOUND, "memory_bytes": 17 * GIB}) == "does not fit: it needs 17.0 GiB, the device has 16.0 GiB"
    assert doubt({**FOUND, "seconds": 1e9}) == "would take 11,574 days on this machine"
    assert doubt({**FOUND, "refusal": "expected to be refused"}) == "expected to be refused"
    assert doubt({**FOUND, "unusual": "optimizer.lr 90 is"}) == "optimizer.lr 90 is"


def test_what_a_forecast_assumes() -> None:
    adds = "compiling adds about 40 s the first time, with a core to itself"
    assert assumed(FOUND, 3) == f"from speeds measured on the machine; 3 runs train on it now; {adds}"
    assert (
        assumed({**FOUND, "provisional": "of the defaults"})
        == f"from speeds measured on the machine; {adds}; of the defaults"
    )
    assert (
        assumed({**FOUND, "preparation": "and once, reading"})
        == f"from speeds measured on the machine; {adds}; and once, reading"
    )
