"""Seconds of every kernel of a real training step, and the line through equal ones of different sizes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from torch.utils._python_dispatch import TorchDispatchMode

from workbench.forecasting.operations import Operation, described, tensors_in

# Shape legend: N readings, K things that a time is a sum over.


class Reading(NamedTuple):
    """One kernel call of a real step: what it did, and the seconds it took."""

    operation: Operation
    seconds: float


class Stopwatch(TorchDispatchMode):
    """Time every operation on real tensors by itself while it is on, with the caches as they are.

    Args:
        clock: seconds, as a thread of one processor counts them or as the wall does.
    """

    def __init__(self, clock: Callable[[], float], wait: Callable[[], None]) -> None:
        super().__init__()
        self._clock, self._wait = clock, wait
        self.readings: list[Reading] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._wait()
        began = self._clock()
        out = func(*args, **(kwargs or {}))
        self._wait()
        seconds = self._clock() - began
        read = list(tensors_in([*args, *(kwargs or {}).values()]))
        written = list(tensors_in(out if isinstance(out, (tuple, list)) else [out]))
        given = {tensor.untyped_storage().data_ptr() for tensor in read}
        views = not func._schema.is_mutable and all(t.untyped_storage().data_ptr() in given for t in written)
        if written and not views:
            name = func.overloadpacket.__name__
            key, kind, dims = described(name, read, written)
            moved = sum(t.numel() * t.element_size() for t in (*read, *written))
            operation = Operation(name, key, kind, *dims, moved)
            self.readings.append(Reading(operation, seconds))
        return out


def lines(readings: Iterable[Reading]) -> dict[str, tuple[float, ...]]:
    """Return rates by key: seconds per call, then per FLOP and number of a product, or per byte; by kind for keys
    that nobody
    has met."""
    by_key: dict[str, list[Reading]] = {}
    for reading in readings:
        operation = reading.operation
        by_key.setdefault(operation.key, []).append(reading)
        by_key.setdefault(operation.kind, []).append(reading)
    return {
        key: fitted_line([r.operation.sizes for r in each], [r.seconds for r in each]) for key, each in by_key.items()
    }


def fitted_line(sizes_NK: Sequence[Sequence[float]], seconds_N: Sequence[float]) -> tuple[float, ...]:
    """Return rates >= 0 with sizes x rates = seconds, closest by relative error.

    Least squares over every subset of the columns; of those without a negative rate, the best: with at most five
    columns there are 31. All rates are then scaled so that the sums agree, because readings scatter upwards, and a fit
    of relative errors follows the quick ones: a seventh of the time between products was missing.

    Args:
        sizes_NK: (N, K), the first column of ones.
        seconds_N: (N,).

    Example:
        >>> [round(rate, 6) for rate in fitted_line([(1, 10), (1, 20)], [1.5, 2.5])]
        [0.5, 0.1]
    """
    seconds, sizes = np.maximum(np.asarray(seconds_N, dtype=np.float64), 1e-9), np.asarray(sizes_NK, dtype=np.float64)
    rows = sizes / seconds[:, None]
    # Columns of like size, or the solution drowns in rounding.
    scale = np.maximum(np.abs(rows).max(0), 1e-300)
    scaled, columns = rows / scale, rows.shape[1]
    best, least = np.zeros(columns), np.inf
    for count in range(1, columns + 1):
        for chosen in itertools.combinations(range(columns), count):
            found, *_ = np.linalg.lstsq(scaled[:, chosen], np.ones(len(seconds)), rcond=None)
            if (found < 0).any():
                continue
            error = float(np.square(scaled[:, chosen] @ found - 1).sum())
            if error < least - 1e-12:
                least, best = error, np.zeros(columns)
                best[list(chosen)] = found
    rates = best / scale
    return tuple(float(rate) for rate in rates * (seconds.sum() / (sizes @ rates).sum()))
