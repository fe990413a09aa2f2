"""The cache of compiled graphs, kept usable: a process that was killed while it linked leaves half a library behind.

Inductor links straight to the final name and takes any file of that name for whole, so that every later run of the
same graph would fail at loading it (seen with torch 2.13 after a kill -9 during compilation).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import torch

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
    """The library that the dynamic loader could not read, if that is what went wrong."""
    match = _DAMAGED.search(str(error))
    return Path(match[1]) if match else None
