"""The cache of compiled graphs, kept usable and quick.

A process that was killed while it linked leaves half a library behind: inductor links straight to the final name and
takes any file of that name for whole, so that every later run of the same graph would fail at loading it (seen with
torch 2.13 after a kill -9 during compilation). And every process asks a compiler anew which instructions its kernels
may use, though all graphs are there: 2.4 of 5.9 seconds (Intel with AMX), now once per machine.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import torch

from workbench.ops.remembered import recalled, remember, subject_of

PROBE = "instructions"
"""Name of the file that says that all are usable."""
# What the dynamic loader says of a file that ends too early, or that is empty.
_DAMAGED = re.compile(r"(/[^\n]+?\.so): (?:file too short|invalid ELF header|cannot read file data)")


def mending(compile: Callable[[], object]) -> list[Path]:
    """Call ``compile``; where it stumbles over a damaged library in the cache, delete that and call it again.

    Args:
        compile: compiles and runs what is to be compiled; may be called several times.

    Returns:
        The files that were deleted.

    Raises:
        Exception: whatever else ``compile`` raises.
    """
    mended: list[Path] = []
    while True:
        try:
            compile()
            return mended
        except Exception as error:
            damaged = damaged_library(error)
            # The same file twice: it was not the kill, and trying on would not end.
            if damaged is None or damaged in mended:
                raise
            damaged.unlink(missing_ok=True)
            mended.append(damaged)
            torch.compiler.reset()


def damaged_library(error: BaseException) -> Path | None:
    """Return the library of the cache that the dynamic loader could not read, if that is what went wrong."""
    if (match := _DAMAGED.search(str(error))) is None:
        return None
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    # Triton keeps its own there unless it is told otherwise. Whatever else cannot be read is not ours to delete.
    folders = (cache_dir(), os.environ.get("TRITON_CACHE_DIR") or cache_dir())
    found = os.path.realpath(match[1])
    return Path(match[1]) if any(found.startswith(os.path.realpath(each) + os.sep) for each in folders) else None


def probe_instructions(folder: Path) -> None:
    """Find out once per machine that kernels may use all instructions which this processor has.

    Torch compiles, links and loads a library for each set of them, in processes of their own. Where one cannot be
    used, for an old compiler, every process goes on asking. Before anything is compiled: the answer is part of the key
    under which graphs are kept.

    Args:
        folder: of what is remembered of this machine.
    """
    import torch._dynamo
    from torch._inductor import config, cpu_vec_isa

    # Nothing is compiled; or there is somebody's own word, or ours of before.
    if torch._dynamo.config.disable or config.cpp.vec_isa_ok is not None:
        return
    subject = subject_of(torch.device("cpu"), threads=1)
    if recalled(folder, PROBE, subject) is None:
        offered = set(cpu_vec_isa.x86_isa_checker())
        usable = cpu_vec_isa.valid_vec_isa_list()
        if not offered or {word for instructions in usable for word in str(instructions).split()} != offered:
            return
        remember(folder, PROBE, subject, {"instructions": sorted(offered)}, 0.0)
    config.cpp.vec_isa_ok = True


def missing_compiler() -> str:
    """Return the name of the C++ compiler that torch calls on a CPU where it is missing, else an empty text."""
    # As torch._inductor.config.cpp.cxx says, whose import takes seconds.
    name = os.environ.get("CXX", "g++")
    return "" if shutil.which(name) else name or "CXX"
