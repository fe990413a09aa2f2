"""A forecast in words and numbers, and beside what was measured: what panel, report and terminal show alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.plots.curves import curve
from workbench.printable import UNKNOWN, count, duration_words
from workbench.runs.measured import measured
from workbench.runs.state import FINAL
from workbench.telemetry import number

if TYPE_CHECKING:
    from workbench.runs.view import RunView

NUMBERS = (
    "parameters", "flops_per_token", "flops", "memory_bytes", "device_memory_bytes", "tokens_per_second", "seconds",
    "seconds_low", "seconds_high", "steps", "tokens",
)  # fmt: skip
"""What every forecast must have to be shown (``Forecast.to_dict``); all else may be missing."""
LONG_SECONDS = 90 * 86_400.0
"""From which on a run is said to take too long to be begun without a thought."""
ALONE = "alone on the machine"
"""What every forecast assumes."""


def whole_forecast(raw: Any) -> dict[str, Any] | None:
    """A forecast read from a file, or None where it is none: damaged, or of another version."""
    if not isinstance(raw, dict):
        return None
    for name in NUMBERS:
        value = raw.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
            return None
    parts, notes = raw.get("memory"), raw.get("notes")
    known = isinstance(parts, dict) and all(isinstance(size, (int, float)) for size in parts.values())
    return {
        **raw,
        "memory": parts if known else {},
        "notes": notes if isinstance(notes, list) else [],
        "compile_seconds": raw.get("compile_seconds") if number(raw.get("compile_seconds")) > 0 else 0.0,
    }


def bytes_words(size: float) -> str:
    """Bytes in binary units.

    Example:
        >>> bytes_words(3 * 2**29), bytes_words(200 * 2**20)
        ('1.5 GiB', '200 MiB')
    """
    if size >= 2**30:
        return f"{size / 2**30:.1f} GiB" if size < 100 * 2**30 else f"{size / 2**30:.0f} GiB"
    return f"{size / 2**20:.0f} MiB" if size >= 2**20 else f"{size / 2**10:.0f} KiB"


def large(value: float) -> str:
    """A large number with a power of ten: 3.4e14.

    Example:
        >>> large(3.41e14), large(950.0)
        ('3.4e14', '950')
    """
    if value < 1e6:
        return f"{value:,.0f}"
    digits, power = f"{value:.1e}".split("e")
    return f"{digits}e{int(power)}"


def cost_of(found: Mapping[str, Any], price_per_hour: float) -> tuple[float, float, float]:
    """(low, likely, high) cost of a run at a price per hour, over the band of its time."""
    low, likely, high = (price_per_hour * found[name] / 3600 for name in ("seconds_low", "seconds", "seconds_high"))
    return low, likely, high


def fits(found: Mapping[str, Any]) -> bool:
    """Whether the device has the memory."""
    return bool(found["memory_bytes"] <= found["device_memory_bytes"])


def misfit(found: Mapping[str, Any]) -> str:
    """How far memory is short, in words; empty where it fits."""
    if fits(found):
        return ""
    need, there = bytes_words(found["memory_bytes"]), bytes_words(found["device_memory_bytes"])
    return f"does not fit: it needs {need}, the device has {there}"


def doubt(found: Mapping[str, Any]) -> str:
    """What speaks against running a recipe as it is: memory, time, a knob far off; empty where nothing does."""
    if why := misfit(found):
        return why
    if found["seconds"] > LONG_SECONDS:
        return f"would take {found['seconds'] / 86_400:,.0f} days on this machine"
    # Forecasts of earlier versions do not say.
    return str(found.get("unusual", ""))


def assumed(found: Mapping[str, Any], sharing: int = 0) -> str:
    """What a forecast's time and speed hold for, what is otherwise now, and what comes before.

    Args:
        sharing: runs that train on the machine now.

    Example:
        >>> assumed({}), assumed({}, 2)
        ('alone on the machine', 'alone on the machine; 2 runs train on it now')
    """
    now = f"; {sharing} run{'s' * (sharing != 1)} train{'s' * (sharing == 1)} on it now" if sharing else ""
    # Forecasts of earlier versions do not say.
    more = [str(found[name]) for name in ("preparation", "provisional") if found.get(name)]
    return "; ".join([f"{ALONE}{now}", *more])


def moving(found: Mapping[str, Any]) -> dict[str, tuple[list[float], list[float]]]:
    """The knobs that move along the budget, and the learning rate always.

    Returns:
        path -> (places as shares of the budget, values).
    """
    schedules = found.get("schedules") or {}
    places = list(schedules.get("progress") or ())
    shown: dict[str, tuple[list[float], list[float]]] = {}
    for path, values in schedules.items():
        alike = len(values) == len(places) > 0 and all(map(math.isfinite, values))
        # Relative to its own size: a rate of 1e-5 that halves has moved.
        moved = alike and max(values) - min(values) > 1e-9 * max(1e-12, *map(abs, values))
        if path != "progress" and alike and (moved or path == "optimizer.lr"):
            shown[path] = (places, list(values))
    return shown


def at_work(found: Mapping[str, Any]) -> tuple[float, float] | None:
    """Mean shares of layers and time in which layers compute (forward) and train (backward); None without a plan."""
    layers = found.get("layers") or {}
    shares = [[share for place in layers.get(way) or () for share in place] for way in ("forward", "backward")]
    if not shares[0] or len(shares[0]) != len(shares[1]):
        return None
    forward, backward = (sum(values) / len(values) for values in shares)
    return forward, backward


@dataclass(frozen=True)
class Compared:
    """One quantity, forecast and measured.

    Attributes:
        name: with its unit.
        ahead, measured: the two as text, ``-`` where one is not known.
        off: forecast over measured, minus 1; None where they cannot be compared (yet).
        note: what else there is to say.
    """

    name: str
    ahead: str
    measured: str
    off: float | None = None
    note: str = ""

    @property
    def ratio_words(self) -> str:
        """What was measured as a share of the forecast: ``28%``, ``8.0 x``; a dash where nothing is known.

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
    """A forecast beside what a run has shown so far.

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
    speed, memory = measured(view, "tokens_per_second"), measured_memory(view)
    return [
        _compared("parameters", found["parameters"], parameters, count),
        _compared("steps", found["steps"], round(reached) if reached else None, count, pace),
        _compared("tokens/s", found["tokens_per_second"], speed, count),
        _compared("training time", found["seconds"], total, duration_words, _band_words(found, total, pace)),
        _compared(
            "memory for training", found["memory_bytes"], memory, bytes_words,
            "" if memory or not view.final else "not measured apart from the process",
        ),
    ]  # fmt: skip


def beside_line(rows: Sequence[Compared], status: str, sharing: int = 0) -> str:
    """Speed and time as measured, beside the forecast and what that assumed, in one sentence; empty where a run
    ended before anything was measured.

    Args:
        status: of the run. Where it is over, its speed is no present one; where it ended early, its time is reckoned.
        sharing: runs that train on the machine now, the run among them.
    """
    found = {row.name: row for row in rows}
    speed, seconds = found["tokens/s"], found["training time"]
    if speed.off is None:
        if status in FINAL:
            return ""
        return f"forecast {speed.ahead} tokens/s, {ALONE}; not measured yet"
    if status not in FINAL:
        return f"now {speed.measured} tokens/s; forecast {speed.ahead}, {assumed({}, sharing if sharing > 1 else 0)}"
    if seconds.off is None:
        return f"{status} at {speed.measured} tokens/s; forecast {speed.ahead}, {ALONE}"
    took = "took" if status == "finished" else f"{status}, would have taken"
    return f"{took} {seconds.measured} at {speed.measured} tokens/s; forecast {seconds.ahead} at {speed.ahead}, {ALONE}"


def _band_words(found: Mapping[str, Any], seconds: float | None, pace: str) -> str:
    """Whether the time lies within the band that was promised, and how it was reckoned."""
    if seconds is None:
        return pace
    low, high = found["seconds_low"], found["seconds_high"]
    # A budget in seconds is kept by itself: there is no promise to break.
    if low == high:
        return pace
    where = "within" if low <= seconds <= high else "outside"
    text = f"{where} the band of {duration_words(low)} to {duration_words(high)}"
    return f"{text}, {pace}" if pace else text


def measured_memory(view: RunView) -> float | None:
    """Bytes that training took at most, beyond what the process held before there was a model; None if not said."""
    readings = curve(view, "memory_gib").y_N
    before = view.environment.get("memory_before_gib")
    if not len(readings) or before is None:
        return None
    return max(0.0, float(readings.max()) - number(before)) * 2**30


def _compared(name: str, ahead: float, there: Any, form: Any, note: str = "") -> Compared:
    if there is None or not math.isfinite(number(there)) or number(there) <= 0:
        return Compared(name, form(ahead), UNKNOWN, None, note)
    return Compared(name, form(ahead), form(number(there)), ahead / number(there) - 1, note)
