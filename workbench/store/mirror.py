"""A copy of a run folder that goes on growing, for places which see no disk of each other.

Two folders, each of any file system that fsspec knows: that of the run, and that of its watchers. Streams and logs are
appended to, by ranges of bytes; small files are replaced whole; requests go the other way. All else reads the copy as
it reads a run. The state of a copy names the run's URL (``afar``), and its ``heartbeat`` is the time of this machine's
clock at which there was news; a folder that another copy is made of keeps both as the run wrote them.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from workbench.base.errors import RunError, typed_line, unknown
from workbench.store.folder import READ_LIMIT_BYTES, parsed_json
from workbench.store.state import FINAL

PIECE_BYTES = 4 << 20
"""Bytes of one stream that are copied at once."""
CONNECT_SECONDS = 15
_REQUEST, _ANSWER, _ASIDE = ".request.json", ".answer.json", ".tmp"
_REQUEST_NAME = re.compile(r"[0-9]{20}-[a-z]{1,16}-[0-9a-f]{8}\.request\.json")
# Locks and the reserve mean something on one machine only; what a launcher keeps would be asked of the wrong one.
_KEPT_THERE = ("reserve", "launched.json", "state.json", "heldout.npz")
_ONLY_THERE = (".lock", _ASIDE)
# Replacing a file is one step for object stores; elsewhere half of it could be read, so it is renamed into place.
_RENAMED = ("file", "local", "sftp", "ssh", "smb")
_COMMON = ("file", "ssh", "s3", "gs", "abfs")
_REFUSALS = ("authentic", "credential", "permission", "access denied", "forbidden")


@dataclass(frozen=True)
class Place:
    """A folder of some file system.

    Attributes:
        fs: an fsspec file system. path: of the folder in it, without a slash at the end. url: as users write it.
    """

    fs: Any
    path: str
    url: str

    def files(self, folder: str = "") -> dict[str, dict[str, Any]]:
        """Return what fsspec says of the files of a folder, by name relative to the place; empty without the folder."""
        try:
            # Stores remember their lists.
            self.fs.invalidate_cache()
            found = self.fs.ls(self._at(folder), detail=True)
        except FileNotFoundError:
            return {}
        named = ((each["name"].rstrip("/").rsplit("/", 1)[-1], each) for each in found)
        return {(f"{folder}/" if folder else "") + name: each for name, each in named if each["type"] != "directory"}

    def read(self, name: str, start: int | None = None, end: int | None = None) -> bytes:
        """Return a file's bytes from ``start`` to ``end``; all of them without."""
        data: bytes = self.fs.cat_file(self._at(name), start=start, end=end)
        return data

    def replace(self, name: str, data: bytes) -> None:
        """Write a file whole; readers see the old one or the new one."""
        if not set(_RENAMED) & set(_protocols(self.fs)):
            self.fs.pipe_file(self._at(name), data)
            return
        aside = f"{self._at(name)}.{secrets.token_hex(4)}{_ASIDE}"
        self.fs.pipe_file(aside, data)
        self.fs.mv(aside, self._at(name))

    def append(self, name: str, data: bytes, start: int, read: Callable[[int, int], bytes]) -> None:
        """Add bytes to the end of a file, of which ``start`` bytes are here.

        Args:
            read: gives those from one byte to another, for stores that cannot append: they are written once more.
        """
        try:
            with self.fs.open(self._at(name), "ab") as file:
                file.write(data)
        except (NotImplementedError, ValueError):
            self.fs.pipe_file(self._at(name), (read(0, start) if start else b"") + data)

    def make(self, folder: str) -> None:
        """Make a folder, and those above it."""
        self.fs.makedirs(self._at(folder), exist_ok=True)

    def move(self, name: str, to: str) -> None:
        """Rename a folder."""
        self.fs.mv(self._at(name), self._at(to), recursive=True)

    def names(self, folder: str) -> list[str]:
        """Return the names of all in a folder; none without the folder."""
        try:
            return [each.rstrip("/").rsplit("/", 1)[-1] for each in self.fs.ls(self._at(folder), detail=False)]
        except FileNotFoundError:
            return []

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}" if name else self.path


def place_at(url: str) -> Place:
    """Open the folder of a URL with fsspec; logins come from its configuration, the environment and SSH's agent.

    Raises:
        RunError: no such protocol, its package is missing, the login was refused, or it cannot be reached.
    """
    from fsspec.core import url_to_fs
    from fsspec.registry import known_implementations

    protocol = url.partition("://")[0]
    if urlsplit(url).password is not None:
        raise RunError("a URL with a password would stand in files and lists; give the login to SSH's agent, the "
                       "environment or fsspec's configuration, and leave it out of the URL")  # fmt: skip
    if protocol not in known_implementations:
        near = unknown("", protocol, known_implementations, noun="protocol").partition(" legal:")[0].rstrip(";")
        raise RunError(f"{url}: {near}; common ones are {', '.join(_COMMON)}")
    options: dict[str, Any] = {}
    try:
        if protocol in ("ssh", "sftp"):
            options = {"timeout": CONNECT_SECONDS, "host_key_policy": _known_hosts()}
        # Of a connection that was lost nothing may be used again.
        fs, path = url_to_fs(url, skip_instance_cache=True, **options)
    except ImportError as error:
        extras = importlib.metadata.metadata("fsspec").get_all("Provides-Extra") or []
        package = f"fsspec[{protocol}]" if protocol in extras else str(error)
        raise RunError(f"{url}: {protocol}:// needs a package: pip install '{package}'") from None
    except Exception as error:
        raise RunError(reason(url, error)) from None
    return Place(fs, path.rstrip("/"), url.rstrip("/"))


def reason(url: str, error: BaseException) -> str:
    """Return in a sentence why a folder could not be read."""
    host = urlsplit(url).netloc or "it"
    said = f"{type(error).__name__} {error}".lower()
    if any(word in said for word in _REFUSALS):
        return f"{url}: {host} refuses this login ({typed_line(error)})"
    return f"{url} cannot be reached ({typed_line(error)})"


class Mirror:
    """Copies what is new of a run, and what its watchers ask of it.

    Args:
        run: folder of the run. watchers: folder of the copy.
        checkpoints: copy the newest checkpoint, too.

    Attributes:
        ended: the state says that no process will change the run any more, and all of it is copied.
        asked: a request has no answer yet.
    """

    def __init__(self, run: Place, watchers: Place, *, checkpoints: bool = False) -> None:
        self.run, self.watchers, self.checkpoints = run, watchers, checkpoints
        self.ended = self.asked = False
        self._stamps: dict[str, str] = {}
        self._twice: set[str] = set()
        self._lengths: dict[str, int] = {}
        self._last: dict[str, Any] = {}
        self._news = time.time()
        for folder in ("telemetry", "control"):
            watchers.make(folder)

    def round(self, state: Callable[[dict[str, Any], float], dict[str, Any]]) -> bool:
        """Copy what is new; returns whether there is more of it than fits into a round.

        Args:
            state: takes the run's state and the time of the last news, gives the state of the copy.

        Raises:
            Exception: of the file system; the copy is whole, and the next round of another mirror goes on.
        """
        # Read first and written last: a copy that says that its run has ended has all that was written before.
        now = state(self._state(), self._news)
        controls = self.run.files("control")
        self._ask(controls)
        files = self.run.files()
        streams = {name: info for name, info in self.run.files("telemetry").items() if name.endswith(".jsonl")}
        logs = {name: info for name, info in files.items() if name.endswith(".log")}
        for name in self._small(files, controls):
            self.watchers.replace(name, self.run.read(name))
        behind = [self._grow(name, int(info["size"] or 0), lines=name in streams) for name, info in
                  (streams | logs).items()]  # fmt: skip
        behind.append(self.checkpoints and self._save())
        self.ended = now.get("status") in FINAL and not any(behind)
        if self.ended or now.get("status") not in FINAL:
            self.watchers.replace("state.json", json.dumps(now, ensure_ascii=False, indent=1).encode())
        return any(behind)

    def _state(self) -> dict[str, Any]:
        found = _object(self.run.read("state.json", 0, READ_LIMIT_BYTES))
        # A run that waits or has ended says nothing new; then every look is news.
        if found != self._last or found.get("status") == "queued" or not found.get("heartbeat_monotonic"):
            self._last, self._news = found, time.time()
        return found

    def _small(self, files: dict[str, dict[str, Any]], controls: dict[str, dict[str, Any]]) -> list[str]:
        """Return names of the files to copy whole that have changed."""
        ours = {name.removesuffix(_REQUEST) for name in self._asked}
        told = {name: info for name, info in controls.items() if name == "control/knobs.json" or
                (name.endswith(_ANSWER) and name.removesuffix(_ANSWER) in ours)}  # fmt: skip
        kept = {name: info for name, info in files.items() if name not in _KEPT_THERE and
                not name.endswith((*_ONLY_THERE, ".log")) and int(info["size"] or 0) <= READ_LIMIT_BYTES}  # fmt: skip
        changed = [name for name, info in (kept | told).items() if self._new(name, info)]
        # Once more in the next round: times of files have whole seconds in some places.
        again, self._twice = self._twice, set(changed)
        return [*changed, *(name for name in again if name in kept | told and name not in changed)]

    def _new(self, name: str, info: dict[str, Any]) -> bool:
        # The time of the last access changes by our own reading.
        stamp = repr(sorted((key, str(value)) for key, value in info.items() if key != "time"))
        before, self._stamps[name] = self._stamps.get(name), stamp
        return before != stamp

    def _grow(self, name: str, size: int, *, lines: bool) -> bool:
        """Copy the next piece of a stream; returns whether there is more."""
        have = self._lengths.get(name)
        if have is None:
            known = self.watchers.files(name.rpartition("/")[0]).get(name)
            have = int(known["size"] or 0) if known else 0
        if size < have:
            # Another file than the one that was copied.
            self.watchers.replace(name, b"")
            have = 0
        end = min(size, have + PIECE_BYTES)
        piece = self.run.read(name, have, end) if end > have else b""
        if lines:
            # Whoever resumes a run cuts off a line that was not finished.
            piece = piece[: piece.rfind(b"\n") + 1] if end == size else piece
        if piece:
            self.watchers.append(name, piece, have, partial(self.run.read, name))
        self._lengths[name] = have + len(piece)
        return bool(piece) and end < size

    def _ask(self, controls: dict[str, dict[str, Any]]) -> None:
        """Pass requests that have no answer on to the run, and let both sides know who steers."""
        present = self.watchers.files("control")
        answered = {name.removesuffix(_ANSWER) for name in present if name.endswith(_ANSWER)}
        self._asked = {name for name in present if _REQUEST_NAME.fullmatch(name.rpartition("/")[2])}
        waiting = sorted(name for name in self._asked if name.removesuffix(_REQUEST) not in answered)
        for name in waiting:
            if name not in controls and name.removesuffix(_REQUEST) + _ANSWER not in controls:
                self.run.make("control")
                self.run.replace(name, self.watchers.read(name))
        self.asked = bool(waiting)
        self._agree("control/lease.json", present, controls)

    def _agree(self, name: str, here: dict[str, dict[str, Any]], there: dict[str, dict[str, Any]]) -> None:
        """Copy the lease to where it is older: both sides may write it, and a take-over counts its epoch up."""
        changed = {side: name in files and self._new(f"{side}:{name}", files[name])
                   for side, files in (("here", here), ("there", there))}  # fmt: skip
        if not any(changed.values()):
            return
        ours = self.watchers.read(name) if name in here else b""
        theirs = self.run.read(name) if name in there else b""
        epochs = [int(_object(each).get("epoch") or 0) for each in (ours, theirs)]
        if ours == theirs:
            return
        if theirs and (epochs[1] > epochs[0] or not changed["here"]):
            self.watchers.replace(name, theirs)
        else:
            self.run.make("control")
            self.run.replace(name, ours)

    def _save(self) -> bool:
        """Copy a piece of the newest checkpoint; returns whether there is more of it."""
        steps = [name for name in self.run.names("checkpoints") if re.fullmatch(r"step-\d+", name)]
        newest = max(steps, key=lambda name: int(name[5:]), default="")
        if not newest or newest in self.watchers.names("checkpoints"):
            return False
        source, aside = f"checkpoints/{newest}", f"checkpoints/{newest}{_ASIDE}"
        self.watchers.make(aside)
        have = self.watchers.files(aside)
        for name, info in self.run.files(source).items():
            to = f"{aside}/{name.rpartition('/')[2]}"
            start = int(have[to]["size"]) if to in have else 0
            if start < int(info["size"]) or to not in have:
                end = min(int(info["size"]), start + PIECE_BYTES)
                piece = self.run.read(name, start, end) if end > start else b""
                self.watchers.append(to, piece, start, partial(self.run.read, name))
                return True
        self.watchers.move(aside, source)
        return False


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = parsed_json(data)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def _protocols(fs: Any) -> tuple[str, ...]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def _known_hosts() -> Any:
    """Return paramiko's rule for hosts that fsspec does not know: those that ``ssh`` knows are who they say."""
    import paramiko

    class KnownHosts(paramiko.MissingHostKeyPolicy):
        def missing_host_key(self, client: Any, hostname: str, key: Any) -> None:
            path = os.path.expanduser("~/.ssh/known_hosts")
            if not (os.path.exists(path) and paramiko.HostKeys(path).check(hostname, key)):
                raise paramiko.SSHException(f"{hostname} is not in {path}: log in with `ssh` once")

    return KnownHosts()
