"""Words that all experiments use."""

from __future__ import annotations

IDLE = "on a machine that does nothing else"
"""What a forecast of time supposes: under a load it takes several times as long."""
UNITS = {"nats": "nats", "bits_per_byte": "bits per byte"}
FINAL = "it cannot be resumed; start it anew with the same command or call: what its runs reached so far stays"
"""The way out of an experiment that was cancelled or has failed: a driver goes on with neither."""


def remaining(seconds: float) -> str:
    """About so long to go: fine enough that every run that ends is seen in it.

    Example:
        >>> remaining(42), remaining(112), remaining(2400)
        ('40 s', '1 min 50 s', '40 min')
    """
    if seconds >= 600:
        return duration(seconds)
    minutes, rest = divmod(5 * round(seconds / 5), 60)
    return " ".join(f"{count} {unit}" for count, unit in ((minutes, "min"), (rest, "s")) if count) or "a few seconds"


def duration(seconds: float) -> str:
    """About so long.

    Example:
        >>> duration(42), duration(600), duration(7500)
        ('42 s', '10 min', '2.1 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
