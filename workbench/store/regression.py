"""Compare a repeat with its original: it fails where it ended worse by more than chance explains."""

from __future__ import annotations

import math
from typing import Any

from workbench.base.errors import TargetMissed, WorkbenchError

TOLERANCES = {"nats": 0.05, "bits_per_byte": 0.02}
"""By unit, how much worse a repeat may end if nobody says otherwise: several times what seeds of a preset differ by
(0.014 nats, see LOG), so that rounding on another machine fails nobody; recipes that learn unevenly need more."""
_UNITS = {"nats": "nats", "bits_per_byte": "bits per byte"}


def require_as_good(
    what: str, found: float | None, reference: float | None, tolerance: float, unit: str = "nats", note: str = ""
) -> None:
    """Raise if a repeat ended worse than its original; lower is better, and a score that is not known is worse.

    Args:
        what: the repeat, as the message begins.
        found, reference: scores of the repeat and of the original; without the latter nothing is judged.
        tolerance: how much higher the repeat's may be.
        note: what else the message says, for example that the budget was changed.

    Raises:
        TargetMissed: it is worse. WorkbenchError: the reference or the tolerance is no such number.
    """
    if reference is None:
        return
    reference = _number("the reference", reference)
    tolerance = _number("tolerance", tolerance)
    if tolerance < 0:
        raise WorkbenchError(f"tolerance: how much worse a repeat may end is 0 or more, got {tolerance:g}")
    if found is not None and found <= reference + tolerance:
        return
    ended = "without a score" if found is None else f"at {found:.3f} {_UNITS[unit]}"
    raise TargetMissed(
        f"{what} ended {ended}, the original at {reference:.3f}: worse by more than the tolerance of {tolerance:g}"
        + (f"; {note}" if note else "")
    )


def spent_text(amount: Any, unit: Any) -> str:
    """Return a budget as a notebook and a result both write it."""
    return f"{float(amount or 0):.12g} {unit}"


def _number(what: str, value: Any) -> float:
    # papermill hands on as text what it cannot read as a number.
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise WorkbenchError(
            f"{what}: a number is needed, or None for a reference that judges nothing; got {value!r:.60}"
        )
    return float(value)
