"""A Ray cluster of two nodes on this machine, with a token: two raylets in sessions of their own."""

from __future__ import annotations

import importlib.util
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.tiny_runs import wait_until
from workbench.base.errors import RunError
from workbench.launchers.processes import child_environment
from workbench.launchers.ray import Ray
from workbench.store.state import die_with_parent

RAY = str(Path(sys.executable).with_name("ray"))


class Cluster:
    """Its address, and its nodes, each a process with all of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Ray gives the ports from 10,002 to 19,999 to its workers.
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.nodes: list[subprocess.Popen[bytes]] = []

    def add(self) -> subprocess.Popen[bytes]:
        """Start another node; the first is the head."""
        port = self.address.rpartition(":")[2]
        where = ["--head", f"--port={port}"] if not self.nodes else [f"--address={self.address}"]
        command = [RAY, "start", "--block", *where, "--num-cpus=2", "--object-store-memory=80000000"]
        command += [
            "--disable-usage-stats",
            *(["--include-dashboard=false", f"--temp-dir={self.folder}"] * (not self.nodes)),
        ]
        with open(f"{self.folder}.log", "ab") as log:
            # Its daemons die with `ray start`, and that with whoever tests, also where nobody comes to clean up.
            node = subprocess.Popen(
                command, stdout=log, stderr=log, env=child_environment(), start_new_session=True,
                preexec_fn=die_with_parent,
            )  # fmt: skip
        self.nodes.append(node)
        return node

    def has(self, count: int) -> bool:
        """Return True if so many nodes are there."""
        try:
            Ray(address=self.address, nodes=count)._ask("check", f"--nodes={count}")
        except RunError:
            return False
        return True

    def kill(self, node: subprocess.Popen[bytes]) -> None:
        """Kill a node with all of its processes, as a machine that loses its power."""
        # Some have sessions of their own; a parent that is still there would start children again.
        node.send_signal(signal.SIGSTOP)
        for process in [*psutil.Process(node.pid).children(recursive=True), psutil.Process(node.pid)]:
            with suppress(psutil.Error):
                process.send_signal(signal.SIGKILL)
        node.wait()
        self.nodes.remove(node)


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Start two nodes, and leave no process behind."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install workbench[ray]")
    # The path of a socket within may have 107 characters.
    with (
        tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as place,
        pytest.MonkeyPatch.context() as patch,
    ):
        token = Path(place) / "token"
        token.write_text(secrets.token_hex(32))
        token.chmod(0o600)
        for name, value in (("MODE", "token"), ("TOKEN_PATH", str(token))):
            patch.setenv(f"RAY_AUTH_{name}", value)
        found = Cluster(Path(place) / "r")
        try:
            head = found.add()
            deadline = time.monotonic() + 60
            while head.poll() is None and time.monotonic() < deadline:
                with suppress(OSError), socket.create_connection(("127.0.0.1", int(found.address.split(":")[1])), 1):
                    break
                time.sleep(0.2)
            found.add()
            wait_until(lambda: found.has(2), 90, "two nodes")
            yield found
        finally:
            for node in list(found.nodes):
                with suppress(psutil.Error, OSError):
                    found.kill(node)
            _end_left(place)


def _end_left(place: str) -> None:
    """End workers of nodes that died, which see so only after a while."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and place in process.environ().get("RAY_AUTH_TOKEN_PATH", ""):
                process.send_signal(signal.SIGKILL)
