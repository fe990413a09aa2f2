"""Words that all experiments use."""

from __future__ import annotations

IDLE = "on a machine that does nothing else"
"""What a forecast of time supposes: under a load it takes several times as long."""
UNITS = {"nats": "nats", "bits_per_byte": "bits per byte"}


def duration(seconds: float) -> str:
    """About so long.

    Example:
        >>> duration(42), duration(600), duration(7500)
        ('42 s', '10 min', '2.1 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
