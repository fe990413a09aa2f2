"""Waiting of the processes that train one run for each other, from what the run has recorded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.telemetry.streams import Record, number

# Shape legend: R processes, K records.

WAITING = "waiting_ms"
"""Before the ``/`` and the number of a process: milliseconds that it waited for others in a step."""


def processes(scalars: Sequence[Record]) -> list[int]:
    """Return the numbers of the processes that records tell of; none where one trained alone."""
    # The last record has them if any has: a run resumed by one process alone has no more waiting.
    names = {name for record in (*scalars[:1], *scalars[-1:]) for name in record}
    numbers = (name.partition("/")[2] for name in names if name.startswith(f"{WAITING}/"))
    return sorted(int(each) for each in numbers if each.isdigit())


def waits(scalars: Sequence[Record]) -> tuple[list[int], np.ndarray]:
    """Return steps of records, and milliseconds that each process waited for others, (R, K); NaN where none is told."""
    ranks = processes(scalars)
    records = [record for record in scalars if any(f"{WAITING}/{rank}" in record for rank in ranks)]
    found = [[number(record.get(f"{WAITING}/{rank}")) for record in records] for rank in ranks]
    return [int(record["step"]) for record in records], np.array(found).reshape(len(ranks), len(records))


def waiting_rows(scalars: Sequence[Record]) -> list[tuple[str, list[str]]]:
    """Return by process: mean milliseconds a step that it waited, their share of a step; the slowest and fastest named.

    Over the second half of the records, past compilation and caches; empty where one process trained alone.
    """
    mean_R, step = _late(scalars)
    ends = {int(np.argmin(mean_R)): "the slowest: others wait for it", int(np.argmax(mean_R)): "the fastest"} if (
        len(mean_R) > 1 and np.ptp(mean_R) > 0) else {}  # fmt: skip
    return [
        (f"process {rank}", [f"{each:.1f}", f"{each / step:.0%}" if step else "", ends.get(place, "")])
        for place, (rank, each) in enumerate(zip(processes(scalars), mean_R, strict=False))
    ]


def waiting_fact(scalars: Sequence[Record]) -> str:
    """Return the slowest process and what the fastest waits for it, in a few words; empty where one trained alone."""
    mean_R, step = _late(scalars)
    if len(mean_R) < 2:
        return ""
    share = f", {mean_R.max() / step:.0%} of a step" if step else ""
    ranks = processes(scalars)
    slowest, fastest = ranks[int(np.argmin(mean_R))], ranks[int(np.argmax(mean_R))]
    return f"process {slowest} of {len(mean_R)}; process {fastest} waits {mean_R.max():.1f} ms for it{share}"


def late_mean(scalars: Sequence[Record], name: str) -> float:
    """Return the mean of a scalar over the second half of the records; 0 where none has it."""
    values = [number(record[name]) for record in scalars[len(scalars) // 2 :] if record.get(name) is not None]
    return float(np.nanmean(values)) if np.isfinite(values).any() else 0.0


def _late(scalars: Sequence[Record]) -> tuple[np.ndarray, float]:
    """Return mean waits of the second half, (R,), and the milliseconds of a step then."""
    _, waits_RK = waits(scalars)
    if not waits_RK.size:
        return np.zeros(0), 0.0
    return np.nanmean(waits_RK[:, waits_RK.shape[1] // 2 :], axis=1), late_mean(scalars, "step_ms")
