"""A forecast in words and numbers: what panel, report and terminal show alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from workbench.base.text import duration_words, many
from workbench.telemetry.streams import number

NUMBERS = (
    "parameters", "flops_per_token", "flops", "memory_bytes", "device_memory_bytes", "tokens_per_second", "seconds",
    "seconds_low", "seconds_high", "steps", "tokens",
)  # fmt: skip
"""Fields that every forecast must have to be shown (``Forecast.to_dict``); all else may be missing."""
LONG_SECONDS = 90 * 86_400.0
"""From which on a run is said to take too long to be begun without a thought."""
MEASURED_SPEED = "from speeds measured on the machine"
"""The ground of every forecast of time: no measurement knows what else ran beside it."""


def whole_forecast(raw: Any) -> dict[str, Any] | None:
    """Return a forecast read from a file, or None where it is none: damaged, or of another version."""
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
        **{
            name: raw.get(name) if number(raw.get(name)) > 0 else 0.0
            for name in ("compile_seconds", "preparation_seconds")
        },
    }


def bytes_words(size: float) -> str:
    """Return bytes in binary units.

    Example:
        >>> bytes_words(3 * 2**29), bytes_words(200 * 2**20)
        ('1.5 GiB', '200 MiB')
    """
    if size >= 2**30:
        return f"{size / 2**30:.1f} GiB" if size < 100 * 2**30 else f"{size / 2**30:.0f} GiB"
    return f"{size / 2**20:.0f} MiB" if size >= 2**20 else f"{size / 2**10:.0f} KiB"


def share_words(share: float) -> str:
    """Return a share in whole percent; a small one is not nothing.

    Example:
        >>> share_words(0.094), share_words(0.0043), share_words(0.0)
        ('9%', 'under 1%', '0%')
    """
    return "under 1%" if 0 < share < 0.01 else f"{share:.0%}"


def large(value: float) -> str:
    """Return a large number with a power of ten: 3.4e14.

    Example:
        >>> large(3.41e14), large(950.0)
        ('3.4e14', '950')
    """
    if value < 1e6:
        return f"{value:,.0f}"
    digits, power = f"{value:.1e}".split("e")
    return f"{digits}e{int(power)}"


def cost_of(found: Mapping[str, Any], price_per_hour: float) -> tuple[float, float, float]:
    """Return (low, likely, high) cost of a run at a price per hour, over the band of its time."""
    low, likely, high = (price_per_hour * found[name] / 3600 for name in ("seconds_low", "seconds", "seconds_high"))
    return low, likely, high


def misfit(found: Mapping[str, Any]) -> str:
    """Return how far memory is short, in words; empty where it fits."""
    if found["memory_bytes"] <= found["device_memory_bytes"]:
        return ""
    need, there = bytes_words(found["memory_bytes"]), bytes_words(found["device_memory_bytes"])
    return f"does not fit: it needs {need}, the device has {there}"


def doubt(found: Mapping[str, Any]) -> str:
    """Return what speaks against running a recipe as it is: memory, time, a knob far off; empty where nothing does."""
    if why := misfit(found):
        return why
    # Forecasts of earlier versions do not say.
    if why := str(found.get("refusal", "")):
        return why
    if found["seconds"] > LONG_SECONDS:
        return f"would take {found['seconds'] / 86_400:,.0f} days on this machine"
    return str(found.get("unusual", ""))


def assumed(found: Mapping[str, Any], sharing: int = 0) -> str:
    """Return what a forecast's time and speed hold for, what is otherwise now, and what comes before.

    Args:
        sharing: runs that train on the machine now.

    Example:
        >>> assumed({}), assumed({}, 2)
        ('from speeds measured on the machine', 'from speeds measured on the machine; 2 runs train on it now')
    """
    now = f"; {many(sharing, 'run')} train{'s' * (sharing == 1)} on it now" if sharing else ""
    # Forecasts of earlier versions do not say.
    more = [str(found[name]) for name in ("preparation", "provisional") if found.get(name)]
    return "; ".join([f"{MEASURED_SPEED}{now}", *filter(None, [compiling(found)]), *more])


def before_start(found: Mapping[str, Any]) -> tuple[float, list[str]]:
    """Return the seconds before step 1 as far as they are known, and the names of what takes them.

    Example:
        >>> before_start({"compile_seconds": 30.0, "preparation": "reading the text", "preparation_seconds": 60.0})
        (90.0, ['preparation', 'compiling'])
    """
    named = {"preparation": "preparation", "provisional": "measuring attention", "compile_seconds": "compiling"}
    # Forecasts of earlier versions name no seconds of preparation.
    seconds = found.get("compile_seconds", 0.0) + found.get("preparation_seconds", 0.0)
    return seconds, [words for name, words in named.items() if found.get(name)]


def compiling(found: Mapping[str, Any]) -> str:
    """Return what compiling takes where nothing of it is in a cache; empty where nothing is compiled."""
    seconds = found.get("compile_seconds")
    return f"compiling adds about {duration_words(seconds)} the first time, with a core to itself" if seconds else ""


def moving(found: Mapping[str, Any]) -> dict[str, tuple[list[float], list[float]]]:
    """Return the knobs that move along the budget, and the learning rate always.

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
    """Return mean shares of layers and time in which layers compute (forward) and train (backward);
    None without a plan.
    """
    layers = found.get("layers") or {}
    shares = [[share for place in layers.get(way) or () for share in place] for way in ("forward", "backward")]
    if not shares[0] or len(shares[0]) != len(shares[1]):
        return None
    forward, backward = (sum(values) / len(values) for values in shares)
    return forward, backward
