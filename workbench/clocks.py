"""Clocks that neighbours on the machine stretch least: seconds of a thread, and of a process with its children."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import torch


def thread_clock(device: torch.device) -> Callable[[], float]:
    """Seconds of this thread's processor where it works alone, else of the wall.

    Neighbours on the machine stretch the former least; batches that another thread prepares are not in it.
    """
    return time.thread_time if device.type == "cpu" and torch.get_num_threads() == 1 else time.perf_counter


def processor_seconds() -> float:
    """That this process, and those that it has started and seen end, have computed: what compiling costs, however busy
    the machine is."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
