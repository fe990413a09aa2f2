"""Why a forecast was missed: every reason comes from what was recorded, and none is made up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from workbench.plots.forecast_compared import Compared, beside_line, compared, missed_lines
from workbench.plots.forecast_page import comparison_html
from workbench.store.effective_knobs import EffectiveKnobs, Steered
from workbench.store.view import RunView
from workbench.telemetry.streams import Telemetry

from .ahead import FOUND, GIB

SLOW = {**FOUND, "tokens_per_second": 32_000.0, "seconds": 25.0, "seconds_low": 20.0, "seconds_high": 31.0}
"""The synthetic run trained at 8,000 tokens/s for 102 s."""
ON_CPU = {**FOUND, "memory": {**FOUND["memory"], "heap": 100 << 20}}


STEADY = {**ON_CPU, "schedules": {"progress": [0.5], "optimizer.lr": [0.001]}}


def row(found: dict[str, Any], view: RunView, name: str) -> Compared:
    return next(row for row in compared(found, view) if row.name == name)


def recorded(view: RunView, **values: float) -> RunView:
    """The run as if every record held these as well."""
    scalars = [record | values for record in view.telemetry.scalars]
    return replace(view, telemetry=replace(view.telemetry, scalars=scalars))


@pytest.fixture
def here(view: RunView) -> RunView:
    """A run on the machine whose rates were used, with one thread."""
    environment = {**view.environment, "device": FOUND["machine"], "threads": 1}
    return replace(view, environment=environment | {"memory_before_gib": 0.2, "memory_peak_of": "steps"})


def test_what_came_as_forecast_needs_no_reason(here: RunView) -> None:
    shared = recorded(here, load=6.0, processor_share=0.3)
    rows = compared({**FOUND, "memory_bytes": GIB}, shared)
    assert [each.why for each in rows] == [""] * 5
    assert missed_lines(rows) == []


def test_others_at_work_are_the_reason_of_a_slow_run(here: RunView) -> None:
    shared = recorded(here, load=3.4, processor_share=0.31)
    speed, seconds = row(SLOW, shared, "tokens/s"), row(SLOW, shared, "training time")
    assert speed.why == (
        "the machine was shared: 3.4 threads wanted a core on average, 1 of them this run's; it had a processor for "
        "31% of its time only, and waited for one in the rest"
    )
    assert seconds.why == "as for tokens/s"
    assert missed_lines(compared({**SLOW, "memory_bytes": GIB}, shared)) == [
        f"tokens/s 25% of the forecast: {speed.why}",
        "training time 4.1 x of the forecast: as for tokens/s",
    ]
    assert beside_line(compared(SLOW, shared), shared).endswith(
        "from speeds measured on the machine; others were at work on it"
    )
    assert beside_line(compared(FOUND, shared), shared).endswith("from speeds measured on the machine"), (
        "they slowed nobody down"
    )
    alone = recorded(here, load=1.1, processor_share=0.99)
    assert beside_line(compared(SLOW, alone), alone).endswith("from speeds measured on the machine")
    assert row(SLOW, alone, "tokens/s").why.startswith("no reason is recorded: measure this machine again")
    # They slow nobody down who was faster than forecast.
    fast = {**FOUND, "tokens_per_second": 2000.0}
    assert row(fast, shared, "tokens/s").why.startswith("no reason is recorded")


def test_what_trained_was_not_what_was_forecast(here: RunView) -> None:
    knobs = {"data.batch_size": Steered(32, 64, 100), "optimizer.lr": Steered(0.1, 0.2, 5)}
    steered = replace(here, knobs=EffectiveKnobs({}, knobs))
    why = row(SLOW, steered, "tokens/s").why
    assert "steered while it trained" in why
    assert "data.batch_size 32 \N{RIGHTWARDS ARROW} 64 at step 100" in why
    assert "optimizer.lr" not in why, "which changes no speed"
    moved = replace(here, environment={**here.environment, "device": "another one"})
    assert row(SLOW, moved, "tokens/s").why.startswith("the forecast is of another machine (a machine that never was;")
    ruled = replace(here, recipe={**here.recipe, "data": {"batch_rule": {"kind": "adaptive"}}})
    assert "data.batch_rule 'adaptive' changed the batch" in row(SLOW, ruled, "tokens/s").why
    open_yet = {**SLOW, "provisional": "of the defaults, until the run has tried some"}
    assert row(open_yet, here, "tokens/s").why.endswith("provisional: of the defaults, until the run has tried some")


def test_a_machine_that_was_measured_in_a_busy_moment(here: RunView) -> None:
    event = {"kind": "measurement", "step": 9, "text": "product was remembered from a busy moment: twice as fast now"}
    telemetry: Telemetry = replace(here.telemetry, events=[*here.telemetry.events, event])
    assert row(SLOW, replace(here, telemetry=telemetry), "tokens/s").why == event["text"]


def test_memory_is_missed_for_reasons_of_its_own(here: RunView) -> None:
    shared = recorded(here, load=6.0, processor_share=0.3)
    # 1 GiB was measured.
    half = STEADY | {"memory_bytes": GIB // 2}
    assert row(half, shared, "memory for training").why.startswith("no reason is recorded: run it again")
    # Of an earlier version: the very first reading was as large, so it came before or in the first step.
    earlier = {name: value for name, value in here.environment.items() if name != "memory_peak_of"}
    why = row(half, replace(here, environment=earlier), "memory for training").why
    assert why.startswith("measured is the peak of the whole process")
    assert row(FOUND | {"memory_bytes": GIB // 2}, replace(here, environment=earlier), "memory for training").why == (
        "no reason is recorded: run it again; if it differs as much, plan with what was measured"
    ), "a GPU's allocator counts the steps alone"


def test_sizes_that_move_make_a_heap_grow(here: RunView) -> None:
    scalars = [
        record | {"memory_gib": 0.2 + min(1.0, 0.4 + 0.1 * n)} for n, record in enumerate(here.telemetry.scalars)
    ]
    grown = replace(here, telemetry=replace(here.telemetry, scalars=scalars))
    why = row({**ON_CPU, "memory_bytes": GIB // 2}, grown, "memory for training").why
    assert why == (
        "it grew from 410 MiB in the first step: sizes that move from step to step (objective.mask_rate) leave gaps in "
        "a CPU's heap, more of them than was forecast"
    )
    half = STEADY | {"memory_bytes": GIB // 2}
    assert row(half, grown, "memory for training").why.startswith("no reason is recorded")
    # What came later than the first step is no peak of before, in a run of an earlier version either.
    earlier = {name: value for name, value in here.environment.items() if name != "memory_peak_of"}
    assert row(half, replace(grown, environment=earlier), "memory for training").why.startswith("no reason is recorded")


def test_a_small_model_differs_by_what_a_heap_varies_by(here: RunView) -> None:
    small = recorded(here, memory_gib=0.2 + 80 / 1024)
    why = row(STEADY | {"memory_bytes": 60 << 20}, small, "memory for training").why
    assert why == "the difference of 20 MiB is what a process's heap varies by from run to run"


def test_the_table_says_it_beside_the_number(here: RunView) -> None:
    shared = recorded(here, load=3.4, processor_share=0.31)
    table = comparison_html(compared(SLOW, shared), "run")
    assert 'class="wb-far">25%</td><td>the machine was shared: 3.4 threads' in table
    assert "outside the band of 20 s to 31 s; as for tokens/s" in table
