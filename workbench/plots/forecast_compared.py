"""A forecast beside what a run has measured: what panel, report and terminal show alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from workbench.base.text import UNKNOWN, count, duration_words
from workbench.plots.forecast_facts import MEASURED_SPEED, assumed, bytes_words
from workbench.plots.forecast_reasons import MISSED, others_at_work, why_missed
from workbench.store.measured import measured, memory_for_training
from workbench.store.state import FINAL
from workbench.telemetry.streams import number

if TYPE_CHECKING:
    from workbench.store.view import RunView


@dataclass(frozen=True)
class Compared:
    """One quantity, forecast and measured.

    Attributes:
        name: with its unit.
        ahead, measured: the two as text, ``-`` where one is not known.
        off: forecast over measured, minus 1; None where they cannot be compared (yet).
        note: what else there is to say.
        why: it was missed, in words (:func:`workbench.plots.forecast_reasons.why_missed`); empty where it was not.
    """

    name: str
    ahead: str
    measured: str
    off: float | None = None
    note: str = ""
    why: str = ""

    @property
    def missed(self) -> bool:
        """Return whether it is further off than a forecast may be."""
        return self.off is not None and abs(self.off) > MISSED

    @property
    def words(self) -> str:
        """Note and reason, for the end of a row."""
        return "; ".join(filter(None, (self.note, self.why)))

    @property
    def ratio_words(self) -> str:
        """Return what was measured as a share of the forecast: ``28%``, ``8.0 x``; a dash where nothing is known.

        Example:
            >>> [Compared("", "", "", off).ratio_words for off in (0.0, 0.25, 2.5, -0.875)]
            ['as forecast', '80%', '29%', '8.0 x']
        """
        if self.off is None or self.off <= -1.0:
            return UNKNOWN
        ratio = 1 / (1 + self.off)
        if abs(ratio - 1) < 0.005:
            return "as forecast"
        return f"{ratio:.0%}" if ratio < 2 else f"{ratio:.1f} x"


def compared(found: Mapping[str, Any], view: RunView) -> list[Compared]:
    """Return a forecast beside what a run has shown so far.

    Args:
        found: as :func:`whole_forecast` gives it; of what a fork trains itself where it has ``after_step``, that of its
            checkpoint, else of the whole of the run's recipe.
    """
    ended = view.status == "finished"
    parameters = measured(view, "parameters") or view.environment.get("parameters")
    # Of one moment, all three: the telemetry may be further than the state.
    steps, seconds, progress = (number(view.state.get(name) or 0.0) for name in ("step", "seconds", "progress"))
    if ended:
        steps, seconds, progress = measured(view, "steps") or steps, measured(view, "seconds") or seconds, 1.0
    if view.origin is not None and found.get("after_step") == view.origin.step:
        before = view.origin.share(view.recipe.get("budget"))
        steps, seconds = steps - view.origin.step, seconds - view.origin.seconds
        progress = (progress - before) / (1 - before)
    # What is left takes as long as what is done: fair from a twentieth on, a guess before.
    total = seconds / progress if seconds > 0 and progress >= 0.05 else None
    reached = steps / progress if steps > 0 and progress >= 0.05 else None
    pace = "" if ended or total is None else ("at its pace" if view.final else "at the present pace")
    speed, taken = measured(view, "tokens_per_second"), memory_for_training(view)
    memory = None if taken is None else taken * 2**30
    rows = [
        _compared("parameters", found["parameters"], parameters, count),
        _compared("steps", found["steps"], round(reached) if reached else None, count, pace),
        _compared("tokens/s", found["tokens_per_second"], speed, count),
        _compared("training time", found["seconds"], total, duration_words, _band_words(found, total, pace)),
        _compared(
            "memory for training", found["memory_bytes"], memory, bytes_words,
            "" if memory or not view.final else "not measured apart from the process",
        ),
    ]  # fmt: skip
    told: dict[str, str] = {}
    explained = []
    for row in rows:
        why = why_missed(row.name, row.off, found, view) if row.off is not None and row.missed else ""
        # Speed, time and a budget's steps are missed for one reason, which one place says.
        first = told.setdefault(why, row.name)
        explained.append(replace(row, why=why if not why or first == row.name else f"as for {first}"))
    return explained


def beside_line(rows: Sequence[Compared], view: RunView, sharing: int = 0) -> str:
    """Return speed and time as measured, beside the forecast and what that assumed, in one sentence; empty where a run
    ended before anything was measured.

    Args:
        view: of the run. Where it is over, its speed is no present one; where it ended early, its time is reckoned.
        sharing: runs that train on the machine now, the run among them.
    """
    found = {row.name: row for row in rows}
    speed, seconds, status = found["tokens/s"], found["training time"], view.status
    if speed.off is None:
        if status in FINAL:
            return ""
        return f"forecast {speed.ahead} tokens/s, {MEASURED_SPEED}; not measured yet"
    if status not in FINAL:
        when = "paused at" if status == "paused" else "now"
        return f"{when} {speed.measured} tokens/s; forecast {speed.ahead}, {assumed({}, sharing if sharing > 1 else 0)}"
    slowed = speed.missed and speed.off > 0 and others_at_work(view)
    basis = f"{MEASURED_SPEED}; others were at work on it" if slowed else MEASURED_SPEED
    if seconds.off is None:
        return f"{status} at {speed.measured} tokens/s; forecast {speed.ahead}, {basis}"
    took = "took" if status == "finished" else f"{status}, would have taken"
    return f"{took} {seconds.measured} at {speed.measured} tokens/s; forecast {seconds.ahead} at {speed.ahead}, {basis}"


def missed_lines(rows: Sequence[Compared]) -> list[str]:
    """Return a line for every number that was missed, with the reason; none where all came as forecast.

    Example:
        >>> missed_lines([Compared("steps", "10", "10", 0.0), Compared("tokens/s", "9", "3", 2.0, why="shared")])
        ['tokens/s 33% of the forecast: shared']
    """
    return [f"{row.name} {row.ratio_words} of the forecast: {row.why}" for row in rows if row.missed]


def _band_words(found: Mapping[str, Any], seconds: float | None, pace: str) -> str:
    """Return whether the time lies within the band that was promised, and how it was reckoned."""
    if seconds is None:
        return pace
    low, high = found["seconds_low"], found["seconds_high"]
    # A budget in seconds is kept by itself: there is no promise to break.
    if low == high:
        return pace
    where = "within" if low <= seconds <= high else "outside"
    ends = dict.fromkeys((duration_words(low), duration_words(high)))
    text = f"{where} the band of {' to '.join(ends)}"
    return f"{text}, {pace}" if pace else text


def _compared(name: str, ahead: float, there: Any, form: Any, note: str = "") -> Compared:
    if there is None or not math.isfinite(number(there)) or number(there) <= 0:
        return Compared(name, form(ahead), UNKNOWN, None, note)
    return Compared(name, form(ahead), form(number(there)), ahead / number(there) - 1, note)
