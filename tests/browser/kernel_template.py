"""The process that kernels are forked from (:mod:`tests.browser.forked_kernels`); its argument is the socket's number.

It has one thread, ends with its standard input, and kills the kernel of whoever has stopped asking.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tests.browser.forked_kernels import LARGEST_BYTES, MODULES


class _Kernel(NamedTuple):
    pid: int
    ended: int
    """A descriptor that is readable when it has."""
    channel: socket.socket


@contextmanager
def template(folder: Path) -> Iterator[str]:
    """Run one; gives the address to ask at (at once: who asks while it loads is served afterwards)."""
    address = str(folder / "kernel-template")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen()
    with listener:
        # With a thread of OpenBLAS for each further core it could not be forked; a kernel is told that it has a parent.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "JPY_PARENT_PID": str(os.getpid())}
        command = [sys.executable, "-m", __name__, str(listener.fileno())]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, pass_fds=[listener.fileno()])
    try:
        yield address
    finally:
        process.communicate()


def serve(listener: socket.socket) -> list[str] | None:
    """Fork kernels until the standard input is closed; in a kernel: returns its arguments."""
    kernels: dict[int, _Kernel] = {}
    while True:
        poll = select.poll()
        for number in (0, listener.fileno(), *kernels):
            poll.register(number, select.POLLIN)
        ready = [number for number, _ in poll.poll()]
        if 0 in ready:
            for kernel in {*kernels.values()}:
                os.kill(kernel.pid, signal.SIGKILL)
            return None
        for number in ready:
            if number == listener.fileno():
                channel, _ = listener.accept()
                if (order := _received(channel, kernels)) is not None:
                    listener.close()
                    return order
            elif number in kernels:
                _follow(kernels, kernels[number], number)


def _received(channel: socket.socket, kernels: dict[int, _Kernel]) -> list[str] | None:
    message, descriptors, _, _ = socket.recv_fds(channel, LARGEST_BYTES, 3)
    order = json.loads(message)
    pid = os.fork()
    if pid:
        for number in descriptors:
            os.close(number)
        channel.send(b"%d" % pid)
        kernel = _Kernel(pid, os.pidfd_open(pid), channel)
        kernels[kernel.ended] = kernels[channel.fileno()] = kernel
        return None
    os.setsid()
    channel.close()
    for other in {*kernels.values()}:
        other.channel.close()
        os.close(other.ended)
    for standard, number in enumerate(descriptors):
        os.dup2(number, standard)
        os.close(number)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    arguments: list[str] = order["arguments"]
    return arguments


def _follow(kernels: dict[int, _Kernel], kernel: _Kernel, number: int) -> None:
    """It has ended, or nobody stands for it any more."""
    if number == kernel.ended:
        code = os.waitstatus_to_exitcode(os.waitpid(kernel.pid, 0)[1])
        with suppress(OSError):
            kernel.channel.send(b"%d" % code)
        del kernels[kernel.ended]
        kernels.pop(kernel.channel.fileno(), None)
        os.close(kernel.ended)
        kernel.channel.close()
    else:
        del kernels[number]
        os.kill(kernel.pid, signal.SIGKILL)


def main() -> None:
    """Load, serve, and be a kernel."""
    listener = socket.socket(fileno=int(sys.argv[1]))
    del sys.path[0]  # the folder that `-m` adds: a kernel has it not
    gc.disable()
    for name in MODULES:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    gc.enable()
    if (arguments := serve(listener)) is not None:
        from ipykernel import kernelapp

        sys.argv = ["ipykernel_launcher", *arguments]
        kernelapp.launch_new_instance()


if __name__ == "__main__":
    main()
