"""Say why a forecast was missed, in plain words: only what the forecast and the run have recorded, nothing guessed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.plots.forecast_facts import bytes_words, moving
from workbench.telemetry.streams import number

if TYPE_CHECKING:
    from workbench.store.view import RunView

MISSED = 0.2
"""A fifth is what a forecast here is held to."""
BUSY_SHARE = 0.9
"""Share of a processor: training that has less waited for somebody, for a tenth of its time at least."""
BUSY_LOAD = 0.5
"""Threads beyond the run's own that wanted a core on average, from which on the machine was shared."""
HEAP_VARIES = 30 << 20
"""Bytes by which the same training differs from run to run on a CPU (``forecasting/footprint.py``)."""
_SIZES = ("data.batch_size", "data.sequence_length", "objective.")
"""Knobs that decide how many rows, tokens and labels a step has."""
_MOVES = ("data.", "objective.", "depth.", "architecture.", "execution.")
"""Knobs that move speed and memory; what an optimizer's rate is changes neither."""


def why_missed(name: str, off: float, found: Mapping[str, Any], view: RunView) -> str:
    """Return why one number was missed.

    Args:
        name: of the row (:class:`workbench.plots.forecast_compared.Compared`).
        off: forecast over measured, minus 1; beyond :data:`MISSED` as a rule.
        found: the forecast. view: of the run.
    """
    known = [*_other_training(found, view)]
    if name == "memory for training":
        known += _memory(off, found, view)
        way_on = "run it again; if it differs as much, plan with what was measured"
    elif name == "parameters":
        way_on = "a fault of the forecast, which is worth a report with the recipe"
    else:
        slower = off < 0 if name == "training time" else off > 0
        known += [*(others_at_work(view) if slower else ()), *_measured_otherwise(view)]
        way_on = "measure this machine again while nothing else runs on it (`workbench forecast --measure`)"
    return "; ".join(known) or f"no reason is recorded: {way_on}"


def _other_training(found: Mapping[str, Any], view: RunView) -> list[str]:
    """Say that what trained is not what was forecast."""
    reasons = []
    # A name that one of them does not know says nothing.
    ahead, here = found.get("machine"), view.environment.get("device")
    if ahead and here and ahead != here:
        reasons.append(f"the forecast is of another machine ({ahead}; trained on {here})")
    if steered := [f"{path} {knob}" for path, knob in view.knobs.steered.items() if path.startswith(_MOVES)]:
        reasons.append(f"steered while it trained, which no forecast knows: {', '.join(steered)}")
    rule = ((view.recipe.get("data") or {}).get("batch_rule") or {}).get("kind", "as_scheduled")
    if rule != "as_scheduled":
        reasons.append(f"data.batch_rule '{rule}' changed the batch by what it measured, which no forecast knows")
    if found.get("provisional"):
        reasons.append(f"the forecast was provisional: {found['provisional']}")
    return reasons


def others_at_work(view: RunView) -> list[str]:
    """Return what a run recorded of others on the machine, in words: a forecast assumes that there are none."""
    reasons = []
    threads = int(number(view.environment.get("threads") or 1))
    load, share = _mean(view, "load"), _mean(view, "processor_share")
    if load is not None and load - threads >= BUSY_LOAD:
        reasons.append(
            f"the machine was shared: {load:.1f} threads wanted a core on average, {threads} of them this run's"
        )
    if share is not None and share < BUSY_SHARE:
        reasons.append(f"it had a processor for {share:.0%} of its time only, and waited for one in the rest")
    return reasons


def _measured_otherwise(view: RunView) -> list[str]:
    """Return what the run found of the machine that contradicts the rates it was forecast with."""
    return [str(event.get("text")) for event in view.telemetry.events if event.get("kind") == "measurement"][-1:]


def _memory(off: float, found: Mapping[str, Any], view: RunView) -> list[str]:
    reasons: list[str] = []
    ahead = found["memory_bytes"]
    there = ahead / (1 + off)
    if not (found.get("memory") or {}).get("heap"):
        return reasons
    before = number(view.environment.get("memory_before_gib") or 0.0)
    first = 2**30 * (view.telemetry.series("memory_gib")[1][0] - before)
    if there > ahead and view.environment.get("memory_peak_of") != "steps" and first > ahead:
        reasons.append(
            "measured is the peak of the whole process, in which preparing text, trying kernels and compiling count; "
            "the forecast is of the steps"
        )
    sizes = [path for path in moving(found) if path.startswith(_SIZES)]
    if sizes and there > ahead and there - first > HEAP_VARIES:
        reasons.append(
            f"it grew from {bytes_words(first)} in the first step: sizes that move from step to step "
            f"({', '.join(sizes)}) leave gaps in a CPU's heap, more of them than was forecast"
        )
    if abs(there - ahead) <= HEAP_VARIES:
        reasons.append(
            f"the difference of {bytes_words(abs(there - ahead))} is what a process's heap varies by from run to run"
        )
    return reasons


def _mean(view: RunView, name: str) -> float | None:
    """Over the whole run; None where it was not recorded, as in runs of earlier versions and on a GPU."""
    values = [value for value in view.telemetry.series(name)[1] if math.isfinite(value)]
    return sum(values) / len(values) if values else None
