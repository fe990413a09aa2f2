"""Loading torch, which takes seconds: of a trainer before its first step, of whoever composes or asks a command."""

from __future__ import annotations

import atexit
import gc
import importlib
import sys

COMPILER = "torch._dynamo"
"""Some 90 MiB and a second, which any optimizer of torch loads when it is made, compiled or not."""


def load(*modules: str) -> None:
    """Import modules by name, without looking for garbage meanwhile, nor among what they brought with torch afterwards.

    Modules are none, and looking at them takes a fifth of the time: torch with :data:`COMPILER` takes 2.3 seconds of a
    core instead of 2.9, and the first look afterwards another quarter of a second (AMD EPYC). Where torch was there
    before, whoever loaded it may have let go of tensors that only such a look finds: all is looked at, as ever.
    """
    collects, brings = gc.isenabled(), "torch" not in sys.modules
    gc.disable()
    try:
        for name in modules:
            importlib.import_module(name)
    finally:
        if collects:
            if brings and "torch" in sys.modules:
                gc.freeze()
            gc.enable()


# An interpreter that ends looks through all modules for garbage as well: 0.6 seconds of a core with torch, 1.2 with its
# compiler (AMD EPYC). Registered before they are loaded, hence called after whatever they have to do at the end.
atexit.register(gc.freeze)
