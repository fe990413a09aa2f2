"""What a process that is forked for a run is handed: its arguments, its surroundings, and open files."""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import NamedTuple

READY = b"ready"
"""What whoever has an order says first; answered with the process that waits for it."""
TAKEN = b"taken"
"""What whoever has received an order answers."""
ANSWER_SECONDS = 1.0
"""For one who has nothing else to do."""
_MESSAGE_BYTES = 1 << 20
_MOST_FILES = 8


class Order(NamedTuple):
    """Work for a process that waits for some.

    Attributes:
        arguments: as of a command line.
        working_folder, environment: of the process.
        log: descriptor of its standard output and error.
        descriptors: further ones that it gets, by the environment variable that tells it the number.
    """

    arguments: list[str]
    working_folder: str
    environment: dict[str, str]
    log: int
    descriptors: dict[str, int]

    def send(self, channel: socket.socket) -> None:
        """Hand it over, as one message.

        Raises:
            OSError: nobody waits any more, or the environment is longer than a message may be.
        """
        body = [*self[:3], list(self.descriptors)]
        socket.send_fds(channel, [json.dumps(body).encode()], [self.log, *self.descriptors.values()])

    @classmethod
    def receive(cls, channel: socket.socket) -> Order | None:
        """Wait for one; None when nobody can send it any more."""
        body, files, _, _ = socket.recv_fds(channel, _MESSAGE_BYTES, _MOST_FILES)
        if not body:
            return None
        for number in files:
            # Passed on by name alone. (Flags of this call are ignored, Python 3.11.)
            os.set_inheritable(number, False)
        arguments, working_folder, environment, variables = json.loads(body)
        return cls(arguments, working_folder, environment, files[0], dict(zip(variables, files[1:], strict=True)))

    def adopt(self) -> None:
        """Make this process what one that was started for the work would be."""
        for number in (1, 2):
            os.dup2(self.log, number)
        os.close(self.log)
        os.chdir(self.working_folder)
        os.environ.clear()
        os.environ.update(self.environment)
        os.environ.update({variable: str(number) for variable, number in self.descriptors.items()})


def stale(since: float) -> bool:
    """Whether a file of a loaded module was changed or removed after a moment, in Unix seconds."""
    # Of the module's own: some answer any name, and load what it stands for.
    paths = {getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values())}
    for path in paths:
        try:
            # Others are no files (`torch.ops`).
            if isinstance(path, str) and os.path.isabs(path) and os.stat(path).st_mtime > since:
                return True
        except OSError:
            return True
    return False
