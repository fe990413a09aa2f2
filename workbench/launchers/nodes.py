"""The nodes of one run: they meet over one connection each, before a trainer starts, and hear of each other's end.

The first node has the supervisor, which listens; the others (:mod:`workbench.launchers.node`) connect. Before any
trainer starts, the first node knows that every node came, has the same software and sees the run's folder. From then on
both sides say a word every :data:`BEAT_SECONDS`: a host whose network is cut closes no connection, and collectives of
gloo would wait for it for hours.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import platform
import select
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from workbench.base.errors import RunError
from workbench.base.text import many
from workbench.store.folder import RunFolder

JOIN_SECONDS = 180.0
"""Longest wait for the nodes of a run, once the first is there."""
SHARED_SECONDS = 20.0
"""Longest time until a file that one node writes is seen on another; less than the silence after which one is lost."""
BEAT_SECONDS = 2.0
SILENCE_SECONDS = 30.0
"""After which a node, or the first one, is lost."""
GRACE_SECONDS = 5.0
"""For nodes that are told to end."""
_LONGEST_LINE = 1 << 16
PACKAGES = ("workbench", "torch", "numpy", "tokenizers")
"""Packages of which all nodes need the same version: a run's numbers depend on them."""


class NodesError(RunError):
    """The nodes of a run did not come together; the message names the one at fault."""


class Failed(NamedTuple):
    """The first trainer that failed on another node.

    Attributes:
        rank, code: of the trainer. where: its node, in words that begin with a space.
    """

    rank: int
    code: int
    where: str


def software() -> dict[str, str]:
    """Return the versions that must be the same on all nodes, by name, without loading any of them."""
    found = {"Python": platform.python_version()}
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    # Its version alone says little of a checkout.
    return found | {"workbench": f"{found.get('workbench', '')} ({_source_digest()})".strip()}


def _source_digest() -> str:
    """Return eight digits that two installations share only if all of their Python files are the same."""
    root, digest = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:8]


def differences(ours: dict[str, str], theirs: dict[str, str]) -> str:
    """Return in words how versions there differ from those here; empty where they do not.

    Example:
        >>> differences({"torch": "2.11"}, {"torch": "2.12"})
        'torch 2.12 instead of 2.11'
    """
    names = sorted({*ours, *theirs})
    told = (f"{each} {theirs.get(each, 'none')} instead of {ours.get(each, 'none')}" for each in names)
    return ", ".join(text for each, text in zip(names, told, strict=True) if ours.get(each) != theirs.get(each))


class Line:
    """A connection between two nodes, on which each line is a JSON object; nothing here waits."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection, self._got = connection, b""
        self.closed = False
        self.heard = self._told = time.monotonic()
        self.node, self.where, self.stage = 0, f"a node at {connection.getpeername()[0]}", "hello"

    def __str__(self) -> str:
        return self.where

    def fileno(self) -> int:
        """Return its descriptor, for select."""
        return self._connection.fileno()

    @property
    def here(self) -> str:
        """The address of this side."""
        return str(self._connection.getsockname()[0])

    @property
    def lost(self) -> str:
        """Return the reason that the other side cannot be there any more; empty as long as it may."""
        if self.closed:
            return f"{self} has ended or closed its connection"
        if time.monotonic() - self.heard > SILENCE_SECONDS:
            return f"{self} has not been heard from for {SILENCE_SECONDS:.0f} s: it hangs, or its network is cut"
        return ""

    def say(self, **words: Any) -> None:
        """Send one object; one that cannot be sent is found out by :attr:`lost`."""
        self._told = time.monotonic()
        try:
            self._connection.send(json.dumps(words).encode() + b"\n")
        except BlockingIOError:
            pass
        except OSError:
            self.closed = True

    def beat(self) -> None:
        """Say a word where none was said for a while."""
        if time.monotonic() - self._told > BEAT_SECONDS:
            self.say()

    def read(self) -> list[dict[str, Any]]:
        """Return what came since."""
        try:
            while part := self._connection.recv(4096):
                self._got, self.heard = self._got + part, time.monotonic()
                # A stranger: no node has so much to say.
                if len(self._got) > _LONGEST_LINE:
                    break
            self.closed = True
        except BlockingIOError:
            pass
        except OSError:
            self.closed = True
        *lines, self._got = self._got.split(b"\n")
        try:
            return [words for line in lines if isinstance(words := json.loads(line), dict) and words]
        except ValueError:
            self.closed = True
            return []

    def close(self) -> None:
        """End it."""
        self._connection.close()


class Nodes:
    """The nodes of one run, seen from the first; a run of one node has nothing to wait for.

    Args:
        count: nodes. processes: trainers on each.
        port: on which this one listens, where there are others; ``key``: what they say to be let in.
        host: name or address of this node for the others.
        again: whoever started the nodes starts them again after :data:`workbench.launchers.giving_way.AGAIN`.

    Attributes:
        failed: the first trainer that failed on another node.
    """

    def __init__(
        self, count: int = 1, processes: int = 1, *, host: str = "", port: int = 0, key: str = "", again: bool = False
    ) -> None:
        self.count, self.processes, self.again = count, processes, again
        self.failed: Failed | None = None
        self._host, self._port, self._key = host, port, key
        self._lines: list[Line] = []
        self._failed_at = 0.0

    @property
    def size(self) -> int:
        """Trainers of the run."""
        return self.count * self.processes

    def gather(self, folder: RunFolder, stopped: Callable[[], str], say: Callable[[str], None]) -> str:
        """Wait until every node is there, of the same software and with the run's folder in sight.

        Args:
            stopped: returns why the run is to end after all, else nothing.
            say: called with what is waited for.

        Returns:
            why the run is to end, if it is.

        Raises:
            NodesError: a node did not come, is of other software, or does not see the folder.
            OSError: nobody can listen on the port.
        """
        if self.count == 1:
            return ""
        # A name that nobody has looked for before: what was absent is remembered by network file systems.
        proof = folder.control / f"{self._key}.meeting"
        proof.touch()
        listener = socket.create_server(("", self._port), backlog=self.count)
        listener.setblocking(False)
        ours, deadline = software(), time.monotonic() + JOIN_SECONDS
        strangers: list[Line] = []
        try:
            while len(self._ready) < self.count - 1:
                missing = self.count - 1 - len(self._ready)
                say(f"waiting for {many(missing, 'more node')} of {self.count}")
                if why := stopped():
                    return why
                if time.monotonic() > deadline:
                    there = ", ".join(map(str, self._ready)) or "none"
                    raise NodesError(
                        f"{many(missing, 'node')} of {self.count} did not come within {JOIN_SECONDS:.0f} s "
                        f"(there: {there}): their Python may not start, or their network does not reach {self._host}:"
                        f"{self._port}; their words are in the job's log"
                    )
                _wait([*self._lines, *strangers], 0.2, listener)
                with contextlib.suppress(BlockingIOError):
                    strangers.append(Line(listener.accept()[0]))
                strangers = [each for each in strangers if not self._let_in(each, ours, proof)]
                self._listen()
                for line in self._lines:
                    if line.stage == "blind":
                        raise NodesError(
                            f"{line} does not see what this node ({socket.gethostname()}) writes into the run's "
                            "folder: the runs folder must lie on a disk that all nodes share"
                        )
                    if line.lost:
                        raise NodesError(line.lost)
        finally:
            listener.close()
            for each in strangers:
                each.close()
            proof.unlink(missing_ok=True)
        return ""

    @property
    def _ready(self) -> list[Line]:
        return [each for each in self._lines if each.stage == "ready"]

    def _let_in(self, line: Line, ours: dict[str, str], proof: Path) -> bool:
        """Take a node in that says who it is; True once it is no stranger, or gone."""
        for words in line.read():
            if words.get("key") != self._key or words.get("node") not in range(1, self.count):
                break
            line.node, line.where = words["node"], f"node {words['node']} ({words.get('host')})"
            theirs = words.get("software")
            if other := differences(ours, theirs if isinstance(theirs, dict) else {}):
                line.say(refused=f"this node has {other}")
                raise NodesError(f"{line} has {other}: install the same versions on all nodes")
            line.say(see=str(proof))
            line.stage = "looks"
            self._lines.append(line)
            return True
        return line.closed

    def _listen(self) -> None:
        """Read what the nodes say, and tell them that this one is there."""
        for line in self._lines:
            for words in line.read():
                if "sees" in words:
                    line.stage = "ready" if words["sees"] else "blind"
                if self.failed is None and isinstance(found := words.get("failed"), list) and len(found) == 2:
                    self.failed = Failed(int(found[0]), int(found[1]), f" on {line}")
                    self._failed_at = time.monotonic()
                if "ended" in words:
                    line.stage = "ended"
            line.beat()

    def start(self, master: tuple[str, int]) -> None:
        """Have the other nodes start their trainers.

        Args:
            master: address and port at which the trainers meet.
        """
        for line in self._lines:
            line.say(start={"address": master[0], "port": master[1], "size": self.size, "processes": self.processes})

    def master_address(self) -> str:
        """Return the address of this node for the trainers of all."""
        return self._host if self.count > 1 else "127.0.0.1"

    def interface(self) -> str:
        """Return the network interface by which the others are reached."""
        return interface_of(self._lines[0].here) if self._lines else ""

    def lost(self) -> str:
        """Return why the run cannot go on with these nodes; empty as long as it can, or its trainers may say more."""
        self._listen()
        for line in self._lines:
            if line.stage == "ready" and (why := line.lost):
                return why
        late = self.failed is not None and time.monotonic() - self._failed_at > GRACE_SECONDS
        return "a trainer has failed" if late else ""

    def end(self) -> str:
        """End the trainers of the other nodes; returns the first node that was lost before, as :meth:`lost`."""
        deadline = time.monotonic() + GRACE_SECONDS
        self._listen()
        gone = next((line.lost for line in self._lines if line.stage == "ready" and line.lost), "")
        for line in self._lines:
            line.say(end=True)
        while time.monotonic() < deadline and any(not each.closed and each.stage != "ended" for each in self._lines):
            _wait(self._lines, 0.1)
            self._listen()
        for line in self._lines:
            line.close()
        return gone


def _wait(lines: list[Line], seconds: float, *more: socket.socket) -> None:
    """Wait until somebody says something, or that long: a closed connection would never be silent."""
    numbers = [line.fileno() for line in lines if not line.closed]
    select.select([*numbers, *(each.fileno() for each in more)], [], [], seconds)


def interface_of(address: str) -> str:
    """Return the network interface of this machine that has an address; empty where none has."""
    found = psutil.net_if_addrs().items()
    return next((name for name, all_of in found if any(each.address == address for each in all_of)), "")
