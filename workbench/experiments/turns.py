"""How many runs of an experiment train side by side, and what one takes beside its training."""

from __future__ import annotations

import os
from collections.abc import Iterable

from workbench.launchers.queue.queue_folder import queue_here
from workbench.launchers.queue.settings import physical_cores

START_SECONDS = 5.0
"""Of a run beside its training: start-up, scoring, saving."""


def at_once(threads_of_runs: Iterable[int]) -> int:
    """Runs side by side: of one GPU one, of the cores that the queue gives as many as have their threads.

    Args:
        threads_of_runs: that each trains with; 0 on a GPU.
    """
    queue, threads = queue_here(), max(threads_of_runs)
    cores = min(os.cpu_count() or 1, physical_cores() if queue is None else queue.settings().capacity)
    return max(1, cores // threads) if threads else 1
