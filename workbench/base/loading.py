"""Loading torch, which takes seconds: of a trainer before its first step, of whoever composes or asks a command."""

from __future__ import annotations

import atexit
import gc
import importlib
import sys
import time

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


def process_began() -> float:
    """Return the time at which this process began, in seconds of :func:`time.monotonic`."""
    import psutil

    started = psutil.Process().create_time()
    # Starts are counted from the boot, which Linux tells in whole seconds: a clock that begins there loses nothing.
    since_boot = getattr(time, "CLOCK_BOOTTIME", None)
    if since_boot is None:
        return time.monotonic() - max(0.0, time.time() - started)
    return time.monotonic() - max(0.0, time.clock_gettime(since_boot) - (started - psutil.boot_time()))


# An interpreter that ends looks through all modules for garbage as well: 0.6 seconds of a core with torch, 1.2 with its
# compiler (AMD EPYC). Registered before they are loaded, hence called after whatever they have to do at the end.
atexit.register(gc.freeze)
