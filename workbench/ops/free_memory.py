"""How much memory a process may still take, and whether an error says that there was not enough."""

from __future__ import annotations

import re
from pathlib import Path

import psutil
import torch

_GROUPS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))
"""Files of a control group, version 2 and 1, below /sys/fs/cgroup: limit and use."""


def free_bytes(device: torch.device, at_peak: bool = False) -> int:
    """Bytes that this process can still take on ``device``: of the GPU, or the least that machine and limits leave.

    On a CPU these are what the machine has available, the control group's limit (containers), and the limit on the
    process's own addresses (``ulimit -v``).

    Args:
        at_peak: when this process held the most so far, which on Linux is known: an error frees what led to it.
    """
    if device.type == "cuda":
        # What torch's allocator holds for nobody is free for this process, though not for the driver.
        idle = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + idle
    given_back = _given_back() if at_peak else (0, 0)
    left = [psutil.virtual_memory().available - given_back[0]]
    for limit, use in _GROUPS:
        try:
            most, used = ((Path("/sys/fs/cgroup") / name).read_text().strip() for name in (limit, use))
        except OSError:
            continue
        if most.isdigit():
            left.append(int(most) - int(used) - given_back[0])
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return max(0, min(left))
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    if soft != resource.RLIM_INFINITY:
        left.append(soft - psutil.Process().memory_info().vms - given_back[1])
    return max(0, min(left))


def _given_back() -> tuple[int, int]:
    """Resident bytes and addresses that this process has held at most, beyond what it holds now."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0, 0
    found = {name: 1024 * int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines)
             if name in ("VmPeak", "VmSize", "VmHWM", "VmRSS")}  # fmt: skip
    return found["VmHWM"] - found["VmRSS"], found["VmPeak"] - found["VmSize"]


def ran_out(error: BaseException) -> bool:
    """Whether an error means that memory ran out."""
    # By its words, too: on a CPU torch reports it as a plain RuntimeError.
    text = str(error)
    words = "not enough memory" in text or "can't allocate memory" in text
    return words or type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError)


def wanted_bytes(error: BaseException) -> int | None:
    """Bytes of the tensor for which there was no room, as torch's allocators say it; None where the error does not."""
    text = str(error)
    if found := re.search(r"tried to allocate (\d+) bytes", text):
        return int(found[1])
    if found := re.search(r"[Tt]ried to allocate ([\d.]+) ([KMG])iB", text):
        return round(float(found[1]) * 1024 ** ("KMG".index(found[2]) + 1))
    return None
