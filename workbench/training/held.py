"""A trainer without a run yet: ``python -m workbench.training.held``; the environment names where it gets one from.

It has loaded everything by then, and is an ordinary trainer from then on. It ends when nobody can give it a run any
more.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import time

from workbench.runs.order import CHANNEL_VARIABLE, Order, stale
from workbench.training import worker
from workbench.training.loading import COMPILER, load


def main() -> int:
    """Load torch, wait for a run and train it; returns the exit code."""
    began = time.time()
    with socket.socket(fileno=int(os.environ[CHANNEL_VARIABLE])) as channel:
        _load(channel)
        order = Order.receive(channel)
    if order is None:
        return 0
    since = time.monotonic()
    order.adopt()
    if stale(began):
        # Edited or installed anew while it waited: as the same process, from the beginning.
        for number in order.descriptors.values():
            os.set_inheritable(number, True)
        os.execv(sys.executable, [sys.executable, "-P", "-m", worker.__name__, *order.arguments])
    return worker.main(order.arguments, began=since)


def _load(channel: socket.socket) -> None:
    """What a run loads before its first step; nothing here may start a thread, or ask for a GPU."""
    load("workbench.training.session", COMPILER)
    # A run that is there already may need no compiler.
    if not select.select([channel], [], [], 0.0)[0]:
        load("torch._inductor.compile_fx")


if __name__ == "__main__":
    sys.exit(main())
