"""Kernels forked from a process that has loaded what is not ours: two seconds of a core less for each.

JupyterLab starts this file as its kernel (:func:`command`): it has one forked and stands for it. Signals go on to the
kernel, and neither outlives the other. What is ours each kernel loads by itself, as a user's does.
"""

from __future__ import annotations

# Of both sides; more would be loaded for every kernel.
import os
import signal
import socket
import sys

LARGEST_BYTES = 1 << 17
"""Of a request: an environment and the arguments."""
# What takes longest of what a kernel with a Lab and a run has loaded in the end.
MODULES = (
    "torch", "torch.optim", "torch.utils.data", "ipykernel.kernelapp", "ipykernel.ipkernel", "ipykernel.zmqshell",
    "debugpy", "anywidget", "ipywidgets", "numpy", "orjson", "psutil", "pydantic",
)  # fmt: skip


def command(address: str) -> list[str]:
    """Return the command of a kernel's specification."""
    return [sys.executable, "-IS", __file__, address, "-f", "{connection_file}"]


def stand_for_a_kernel(address: str, arguments: list[str]) -> int:
    """Have a kernel forked that takes over this process's surroundings; returns its exit code."""
    import json

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
        channel.connect(address)
        order = {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}
        socket.send_fds(channel, [json.dumps(order).encode()], [0, 1, 2])
        kernel = int(channel.recv(32))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: os.killpg(kernel, number))
        return int(channel.recv(32) or b"1")


if __name__ == "__main__":
    sys.exit(stand_for_a_kernel(sys.argv[1], sys.argv[2:]))
