"""A supervisor that waits for a run, with a trainer that has loaded torch (:mod:`workbench.runs.launchers.held`).

``python -m workbench.runs.launchers.waiting CHANNEL SECONDS``: a descriptor by which it gets a run, and the time before
torch is loaded. From then on it is an ordinary supervisor. It ends when nobody can give it a run any more.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time

from workbench.runs.launchers import supervisor
from workbench.runs.order import CHANNEL_VARIABLE, READY, TAKEN, Order, stale

TRAINER = "workbench.training.held"
LONGEST_SECONDS = 600.0
"""Of waiting: some 400 MB are not kept for a notebook that somebody has left."""


def main(argv: list[str] | None = None) -> int:
    """Wait for a run and supervise it; returns the exit code."""
    number, seconds = argv or sys.argv[1:]
    began, channel = time.time(), socket.socket(fileno=int(number))
    # Nothing is sent before we are ready: this is the end of whoever holds us.
    if select.select([channel], [], [], float(seconds))[0]:
        return 0
    trainer = _Trainer()
    channel.send(READY)
    order = Order.receive(channel, LONGEST_SECONDS)
    if order is None or stale(began) or trainer.process.poll() is not None:
        return 0
    channel.send(TAKEN)
    channel.close()
    order.adopt()
    return supervisor.main(order.arguments, trainer)


class _Trainer:
    """A trainer that waits for its run; a :class:`supervisor.Starter`."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = supervisor.start_trainer([], dict(os.environ), {CHANNEL_VARIABLE: theirs.fileno()}, TRAINER)

    def __call__(
        self, arguments: list[str], environment: dict[str, str], descriptors: dict[str, int]
    ) -> subprocess.Popen[bytes]:
        """Hand it its run."""
        with self._channel:
            # The log is standard error by now.
            Order(arguments, os.getcwd(), environment, 2, descriptors).send(self._channel)
        return self.process


if __name__ == "__main__":
    sys.exit(main())
