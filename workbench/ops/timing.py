"""Seconds that work takes on a machine that may be busy; every remembered time is measured here."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

# Shape legend: N rounds, P parts of a candidate.

Sample = Callable[[], Sequence[float]]
"""Runs once; returns the seconds of each part."""

QUANTILE = 0.2
"""Quantile of the readings that counts: low enough to exclude disturbed ones, high enough to rest on several."""
ROUNDS, LEAST_ROUNDS = 16, 3
"""Rounds before a measurement can settle, and rounds it takes even beyond its time limit."""
AGREEMENT = 0.05
"""Settled: the earlier and the later half of the rounds give the same seconds to within this share."""


@dataclass(frozen=True)
class Timing:
    """Seconds of a candidate.

    Attributes:
        parts: seconds of each of its parts, the low quantile of their readings.
        rounds: measured.
        disagreement: share by which the two halves of the rounds differ; at most :data:`AGREEMENT` when settled.
    """

    parts: tuple[float, ...]
    rounds: int
    disagreement: float

    @property
    def seconds(self) -> float:
        """Sum of the parts."""
        return sum(self.parts)

    @property
    def settled(self) -> bool:
        """Return True if the two halves of the rounds agree."""
        return self.disagreement <= AGREEMENT


def measure(
    samples: Mapping[str, Sample],
    *,
    rounds: int = ROUNDS,
    least_seconds: float = 0.5,
    limit_seconds: float = 3.0,
    wall: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Measure one candidate or several so that slow moments of the machine do not count.

    The candidates take turns, so a slow stretch hits all of them. Each is represented by a low quantile of its
    readings, because other work only ever adds time: up to three quarters of the readings may be slow. Rounds go on
    until the earlier and the later half agree for every candidate, so a stretch that covers one half is noticed. What
    cannot be noticed is a stretch that covers every round up to :data:`ROUNDS` and ``least_seconds``; hence
    :func:`workbench.ops.remembered.recheck`.

    Args:
        samples: by name; each is called once before it counts.
        rounds: at least, before the measurement can be settled.
        least_seconds: of the wall clock, before the measurement can be settled.
        limit_seconds: of the wall clock; then the measurement ends after at least :data:`LEAST_ROUNDS` rounds, settled
            or not.
        wall: the clock for both, seconds.

    Example:
        >>> measure({"a": lambda: [1.0, 2.0]}, least_seconds=0)["a"].seconds
        3.0
    """
    for sample in samples.values():
        sample()
    began, readings = wall(), {name: list[Sequence[float]]() for name in samples}
    while True:
        for name, sample in samples.items():
            readings[name].append(sample())
        count, passed = len(next(iter(readings.values()))), wall() - began
        over = passed >= limit_seconds and count >= min(rounds, LEAST_ROUNDS)
        if not over and (count < rounds or passed < least_seconds):
            continue
        found = {name: _timing(np.asarray(each, dtype=np.float64)) for name, each in readings.items()}
        if over or all(timing.settled for timing in found.values()):
            return found


def _timing(readings_NP: np.ndarray) -> Timing:
    count = len(readings_NP)
    totals_N = readings_NP.sum(1)
    # The middle reading of an odd number belongs to the later half.
    earlier, later = (
        float(np.quantile(half, QUANTILE)) for half in (totals_N[: count // 2 or 1], totals_N[count // 2 :])
    )
    apart = abs(earlier - later) / max(min(earlier, later), 1e-12)
    return Timing(tuple(np.quantile(readings_NP, QUANTILE, axis=0).tolist()), count, apart)


def timed(work: Callable[[], Any], device: torch.device, clock: Callable[[], float] | None = None) -> Sample:
    """Return a sample of one part: the seconds of one call of ``work`` on a device.

    Args:
        work: what is timed.
        device: a GPU's own events are read, so that the host's other work is not in them.
        clock: for a CPU; :func:`clock_of` when left out.
    """
    if device.type == "cuda":
        return lambda: (_event_seconds(work, device),)
    now = clock or clock_of(device)

    def sample() -> tuple[float]:
        began = now()
        work()
        return (now() - began,)

    return sample


def clock_of(device: torch.device) -> Callable[[], float]:
    """Return the clock that neighbours on the machine stretch least, seconds.

    One thread on a CPU: the CPU time of that thread alone, so that neither other processes nor threads that prepare
    data are in it. Several threads: the wall's. The CPU time of the calling thread would leave the others out; that
    of the process counts threads that spin at a barrier, and the data thread, as work, and divided by the threads it
    favours what runs on one of them. There only the low quantile and the agreement of the halves protect a
    measurement, and a reading is right only if every thread had its core. On a GPU the host must wait for the device
    (:func:`wait_for`).
    """
    return time.thread_time if device.type == "cpu" and torch.get_num_threads() == 1 else time.perf_counter


def wait_for(device: torch.device) -> None:
    """Wait until the device has finished; a CPU always has."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def processor_seconds() -> float:
    """Return CPU seconds of this process and of the children it has waited for: what compiling costs,
    busy machine or not.
    """
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _event_seconds(work: Callable[[], Any], device: torch.device) -> float:
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize(device)
    first.record()
    work()
    last.record()
    last.synchronize()
    return float(first.elapsed_time(last)) / 1e3
