"""Settings by which the C library of trainers, and of what measures for them, keeps a CPU's memory.

**Small chunks are not kept aside.** Torch's tensors begin at multiples of 64 bytes. The piece in front of each goes
into glibc's cache of small chunks, where it no longer joins its neighbours: a tensor of the same size does not fit into
the place of the one before, and the heap grows for some twenty steps. Measured, steps alone, without the cache: 183 MiB
instead of 216 (4 layers x 128), 1,107 instead of 1,343 (8 x 512).

**Freed memory is kept for the next step.** A heap with few gaps ends with all that a step has let go of, which glibc
would hand back, to fetch it page by page in the next step: 1.04 to 1.08 of the time (4 x 128, eager), 1.00 if kept.

**Pages of 2 MiB.** With pages of 4 kB a sweep over parameters that no cache holds waits for addresses as long as for
numbers. Measured side by side on two cores: a step took 0.96 of its time at 6M parameters, 0.88 at 11M, 0.78 at 38M.
glibc asks for them from 2.35 on. Torch can ask as well, but then begins every large tensor with a page, which leaves
more gaps: 154 MiB instead of 183, 988 instead of 1,107, if the C library does. Systems that have none ignore it.

Sources: torch's c10/core/impl/alloc_cpu.cpp; glibc's manual, "Memory Allocation Tunables"; glibc's bug 14581.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

TUNABLES = "GLIBC_TUNABLES"
"""Read by glibc when a process begins; other C libraries do not know it."""
TORCH_HUGE_PAGES = {"THP_MEM_ALLOC_ENABLE": "1"}
"""The variable that makes torch ask for large pages; read with a process's first tensor."""
NAMES = (TUNABLES, *TORCH_HUGE_PAGES)
# In bytes, the largest that glibc takes, and more than a step lets go of.
KEPT = "glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=1073741824"
FEW_GAPS, HUGE_PAGES = f"glibc.malloc.tcache_count=0:{KEPT}", "glibc.malloc.hugetlb=1"


def heap_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what to add to the environment of a new process; what the user has set in it stands.

    Example:
        >>> heap_settings({"GLIBC_TUNABLES": "glibc.malloc.arena_max=1", "THP_MEM_ALLOC_ENABLE": "0"})
        {}
    """
    torch_was_told = environment.keys() >= TORCH_HUGE_PAGES.keys()
    if TUNABLES in environment:
        asked = torch_was_told or HUGE_PAGES in environment[TUNABLES].split(":")
        return {} if asked else dict(TORCH_HUGE_PAGES)
    if torch_was_told:
        return {TUNABLES: FEW_GAPS}
    if _has_huge_pages():
        return {TUNABLES: f"{FEW_GAPS}:{HUGE_PAGES}"}
    return {TUNABLES: FEW_GAPS, **TORCH_HUGE_PAGES}


def _has_huge_pages() -> bool:
    """Return whether the C library can ask for them: glibc from 2.35 on."""
    # Other systems have no confstr, or not this name.
    known = "CS_GNU_LIBC_VERSION" in getattr(os, "confstr_names", ())
    name, _, version = ((known and os.confstr("CS_GNU_LIBC_VERSION")) or "").partition(" ")
    return name == "glibc" and tuple(map(int, version.split(".")[:2])) >= (2, 35)
