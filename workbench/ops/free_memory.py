"""Read the memory that a process may still take, and recognise errors of running out of it."""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    import torch

CONTROL_GROUPS, OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_FILES = {
    "": ("memory.max", "memory.current", "memory.stat"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat"),
}
"""Files of a control group: limit, use, and its parts; version 2, and 1, where memory has groups of its own."""


def free_bytes(device: torch.device, at_peak: bool = False) -> int:
    """Return bytes that this process can still take on ``device``: of the GPU,
    or the least that machine and limits leave.

    On a CPU these are what the machine has available, the limits of the control groups around the process (containers,
    Slurm, systemd), and the limit on its own addresses (``ulimit -v``).

    Args:
        at_peak: when this process held the most so far, which on Linux is known: an error frees what led to it.
    """
    if device.type == "cuda":
        import torch

        # What torch's allocator holds for nobody is free for this process, though not for the driver.
        idle = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + idle
    given_back = _given_back() if at_peak else (0, 0)
    left = [psutil.virtual_memory().available - given_back[0]]
    for files_of_group in _groups():
        try:
            most, used, parts = (file.read_text().strip() for file in files_of_group)
        except OSError:
            continue
        if most.isdigit():
            # What was read from files long ago counts as used, and goes as soon as somebody wants its place.
            found = dict(line.split() for line in parts.splitlines())
            files = int(found.get("total_inactive_file", found.get("inactive_file", 0)))
            left.append(int(most) - int(used) + files - given_back[0])
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    if soft != resource.RLIM_INFINITY:
        left.append(soft - psutil.Process().memory_info().vms - given_back[1])
    return max(0, min(left))


def _groups() -> Iterator[list[Path]]:
    """Yield the files of the control groups that this process is in, and of those around them;
    some may not be there.
    """
    try:
        lines = OWN_GROUPS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, kind, path = line.split(":", 2)
        if kind in _FILES:
            root = CONTROL_GROUPS / kind
            around = [group for group in (root / path.strip("/") / "own").parents if group.is_relative_to(root)]
            yield from ([group / name for name in _FILES[kind]] for group in around)


def _given_back() -> tuple[int, int]:
    """Return resident bytes and addresses that this process has held at most, beyond what it holds now."""
    found = own_sizes()
    return (found["VmHWM"] - found["VmRSS"], found["VmPeak"] - found["VmSize"]) if found else (0, 0)


def own_sizes() -> dict[str, int]:
    """Return bytes of this process by their names in Linux's /proc/self/status; empty where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text(errors="replace").splitlines()
    except OSError:
        return {}
    said = (line.partition(":") for line in lines if line.endswith(" kB"))
    return {name: 1024 * int(value.split()[0]) for name, _, value in said}


def ran_out(error: BaseException) -> bool:
    """Return True if an error means that memory ran out."""
    # By its words, too: on a CPU torch reports it as a plain RuntimeError.
    text = str(error)
    words = "not enough memory" in text or "can't allocate memory" in text
    return words or type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError)


def wanted_bytes(error: BaseException) -> int | None:
    """Return bytes of the tensor for which there was no room, as torch's allocators say it;
    None where the error does not.
    """
    text = str(error)
    if found := re.search(r"tried to allocate (\d+) bytes", text):
        return int(found[1])
    if found := re.search(r"[Tt]ried to allocate ([\d.]+) ([KMG])iB", text):
        return round(float(found[1]) * 1024 ** ("KMG".index(found[2]) + 1))
    return None
