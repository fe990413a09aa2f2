"""The speed of a run now: tokens trained per second of its last ten seconds, the same number wherever it is shown."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

# Shape legend: N records.

SPEED_SECONDS = 10.0
"""Time of training that a speed is taken over, or since the record before where that is longer."""
NOW, MEAN = f"last {SPEED_SECONDS:g} s", "mean"
"""Words for the speed of a run that trains, and for that of one that has ended."""


class RecentSpeed:
    """Speed of a run that trains.

    Args:
        tokens, seconds: of training at its start.

    Example:
        >>> speed = RecentSpeed(0, 0.0)
        >>> [speed.after(100 * second, float(second)) for second in (1, 2)]
        [100.0, 100.0]
    """

    def __init__(self, tokens: int, seconds: float) -> None:
        self._records = deque([(seconds, tokens)])

    def after(self, tokens: int, seconds: float) -> float:
        """Return the speed at a record; ``tokens`` and ``seconds`` are those of training so far."""
        while len(self._records) > 1 and seconds - self._records[1][0] >= SPEED_SECONDS:
            self._records.popleft()
        since, before = self._records[0]
        self._records.append((seconds, tokens))
        # A clock may not have moved between two steps of a toy model.
        return (tokens - before) / max(seconds - since, 1e-9)


def recent_speeds(seconds_N: np.ndarray, tokens_N: np.ndarray, first: float = math.nan) -> np.ndarray:
    """Return the speed at every record, (N,), as :class:`RecentSpeed` gives it while the run trains.

    Args:
        seconds_N, tokens_N: of training, ascending.
        first: speed at the first record, which has none before it.
    """
    # Here: listings of runs name the span of a speed and load no numpy.
    import numpy as np

    count = len(seconds_N)
    since_N = np.searchsorted(seconds_N, seconds_N - SPEED_SECONDS, side="right") - 1
    since_N = np.clip(since_N, 0, np.maximum(np.arange(count) - 1, 0))
    passed_N = np.maximum(seconds_N - seconds_N[since_N], 1e-9)
    speeds_N = (tokens_N - tokens_N[since_N]) / passed_N
    speeds_N[:1] = first
    return speeds_N
