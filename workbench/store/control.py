"""Requests to a run and their answers: one small JSON file each, so any process may ask and none waits for a lock.

``control/<id>.request.json`` is written whole by whoever asks; ``control/<id>.answer.json`` by the trainer, and twice
where carrying it out takes longer than a step: first that it was read, then what became of it. Ids sort in the order of
asking. ``control/knobs.json`` says what may be set. Only the latest answers are kept; telemetry holds every request.
Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.base.errors import RunError, unknown
from workbench.store import lease
from workbench.store.folder import RunFolder, read_json, write_json

VERBS = ("pause", "resume", "stop", "checkpoint", "evaluate", "profile", "set", "check")
"""Verbs that anybody may ask; ``check`` says whether a ``set`` would be accepted, and sets nothing."""
FORKED = "forked"
"""Told to the parent of a fork, so that its telemetry says so; nobody asks for it."""
KEPT_ANSWERS = 200
"""Answered requests kept; a page that turns knobs for days must not make every step's look slower."""
# These change nothing, so they need nobody's lease.
_HARMLESS = ("check", FORKED)
_REQUEST, _ANSWER = ".request.json", ".answer.json"
# Twenty digits of nanoseconds sort by time; 32 random bits keep two who ask in the same nanosecond apart. Any other
# name in the folder (an editor's backup, a planted file) is no request.
_ID = re.compile(r"[0-9]{20}-[a-z]{1,16}-[0-9a-f]{8}")
# The trainer reads these between two steps: a huge file must cost it neither time nor memory.
_READ_LIMIT_BYTES = 1 << 16


@dataclass(frozen=True)
class Request:
    """One request to a run.

    Attributes:
        verb: one of :data:`VERBS`, or :data:`FORKED`.
        arguments: for ``set`` and ``check``: ``path`` (``optimizer.lr``) and ``value``.
        by: who asked, for people; data from anybody.
        epoch: of the lease when it was asked; None where that was not written.
    """

    id: str
    verb: str
    arguments: dict[str, Any] = field(default_factory=dict)
    by: str = ""
    epoch: int | None = None


def send(
    folder: RunFolder, verb: str, *, controller: str = "", take_over: bool = False, by: str = "", **arguments: Any
) -> str:
    """Ask a run for something; returns the request's id (see :func:`outcome`).

    Args:
        controller: id of the caller, where it holds the lease of the run (:mod:`workbench.store.lease`).
        take_over: ask even where somebody else holds it, and end their lease.
        by: who asks, for people; else user and machine.

    Raises:
        RunError: no such verb, arguments missing or too long, somebody else steers the run, or its folder cannot be
            written to.
    """
    if verb not in (*VERBS, FORKED):
        raise RunError(unknown("control verb", verb, VERBS))
    # Refused here, where somebody looks, instead of a step later in the trainer's log.
    if verb in ("set", "check") and not (isinstance(arguments.get("path"), str) and "value" in arguments):
        raise RunError(f"`{verb}` needs the path of a knob and its value, for example path='optimizer.lr', value=0.001")
    request: dict[str, Any] = {"verb": verb, "arguments": arguments, "by": (by or lease.whoami())[:80], "epoch": 0}
    # As `write_json` lays it out: indented, nested lists grow severalfold, and a request that is read in part is never
    # answered.
    try:
        size = len(json.dumps(request, ensure_ascii=False, indent=1).encode())
    except UnicodeEncodeError:
        # Half a character, as a broken paste or a page's cut string gives it.
        raise RunError(f"request '{verb}' holds text that is not Unicode: {arguments!r}; type it again") from None
    if size > _READ_LIMIT_BYTES:
        raise RunError(f"request '{verb}' is {size} bytes long; at most {_READ_LIMIT_BYTES} are read")
    request["epoch"] = None if verb in _HARMLESS else lease.admit(folder, controller, take_over=take_over)
    try:
        # Made at the launch; a run folder that was copied or unpacked may have lost it, empty as it is.
        folder.control.mkdir(exist_ok=True)
        # A clock that was set back must not let a new request overtake an older one.
        latest = max((int(name[:20]) for name in _ids(folder.control, _REQUEST)), default=0)
        request_id = f"{max(time.time_ns(), latest + 1):020d}-{verb}-{os.urandom(4).hex()}"
        # Not synced: a power cut that loses the request has ended the run as well.
        write_json(folder.control / f"{request_id}{_REQUEST}", request, durable=False)
    except OSError as error:
        raise RunError(f"request '{verb}' could not be written to {folder.control}: {error}") from None
    return request_id


def pending(folder: RunFolder) -> list[Request]:
    """Return unanswered requests, oldest first. One scan of one small folder: cheap enough for every step."""
    requests = _ids(folder.control, _REQUEST)
    if not requests:
        return []
    # Looked for after the requests: one that is answered between the two scans counts as answered.
    answered = _ids(folder.control, _ANSWER)
    read = (_read_request(folder.control, request_id) for request_id in sorted(requests - answered))
    return [request for request in read if request is not None]


def refusal(folder: RunFolder, request: Request) -> str:
    """Return why a pending request no longer counts (somebody has taken over since); empty when it does."""
    return "" if request.epoch is None else lease.superseded(folder, request.epoch)


def answer(folder: RunFolder, request_id: str, done: bool | None, text: str) -> None:
    """Say what became of a request.

    Args:
        done: whether the run did, or now does, what was asked; None for what takes longer than a step: it was read and
            is being carried out, and a second answer must follow.
        text: one line for people: what happens or happened, or why not.
    """
    # Ours to get right: ids come from `pending`. (In `outcome` they may come from a page, so there it is an error.)
    assert _ID.fullmatch(request_id), request_id
    value = {"done": done, "text": text, "time": time.time()}
    write_json(folder.control / f"{request_id}{_ANSWER}", value, durable=False)
    if done is not None:
        _forget_old(folder.control)


def request_ids(folder: RunFolder) -> set[str]:
    """Return the ids of all requests that are kept."""
    return _ids(folder.control, _REQUEST)


def outcome(folder: RunFolder, request_id: str) -> dict[str, Any] | None:
    """Return ``{"done", "text", "time"}`` of an answered request, else None; ``done`` is None while it is carried out.

    Raises:
        RunError: that is no request id.
    """
    # Joined to a path below: without the form it could name any file.
    if not _ID.fullmatch(request_id):
        raise RunError(f"'{request_id}' is not the id of a request")
    return _read(folder.control / f"{request_id}{_ANSWER}")


def dismiss_pending(folder: RunFolder, text: str) -> None:
    """Answer every open request with a no: a new attempt must not obey what an earlier one was asked."""
    for request in pending(folder):
        answer(folder, request.id, False, text)
    for request_id in _ids(folder.control, _ANSWER):
        outcome = _read(folder.control / f"{request_id}{_ANSWER}")
        # Accepted by a trainer that ended while it carried it out.
        if outcome is not None and outcome.get("done", False) is None:
            answer(folder, request_id, False, text)


def write_knobs(folder: RunFolder, knobs: Sequence[dict[str, Any]]) -> None:
    """Write down what may be set in the running run, for those who cannot read recipes (:func:`read_knobs`).

    Raises:
        OSError: the disk is full, or the folder is gone.
    """
    folder.control.mkdir(exist_ok=True)
    write_json(folder.knobs, list(knobs), durable=False)


def read_knobs(folder: RunFolder) -> list[dict[str, Any]]:
    """Return the knobs that may be set (``workbench.recipes.changes.settable``); none before it started."""
    raw = read_json(folder.knobs)
    return [knob for knob in raw if isinstance(knob, dict)] if isinstance(raw, list) else []


def fork_text(arguments: Mapping[str, Any], by: str) -> str:
    """Return the text of a fork's event: ``run`` and ``step`` of :data:`FORKED`."""
    return f"{arguments.get('run')} was forked from step {arguments.get('step')} by {by or 'somebody'}"


def _forget_old(control: Path) -> None:
    answered = _ids(control, _ANSWER)
    for request_id in sorted(answered)[:-KEPT_ANSWERS]:
        # The request first: without its answer it would count as open, and be obeyed again.
        for suffix in (_REQUEST, _ANSWER):
            with contextlib.suppress(OSError):
                (control / f"{request_id}{suffix}").unlink(missing_ok=True)


def _ids(control: Path, suffix: str) -> set[str]:
    try:
        with os.scandir(control) as entries:
            names = [entry.name for entry in entries]
    except OSError:
        return set()
    ids = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
    return {request_id for request_id in ids if _ID.fullmatch(request_id)}


def _read_request(control: Path, request_id: str) -> Request | None:
    raw = _read(control / f"{request_id}{_REQUEST}")
    # Requests appear whole, by rename: what cannot be read now never will be, so it is passed over, not retried.
    if raw is None or raw.get("verb") not in (*VERBS, FORKED):
        return None
    arguments, by, epoch = raw.get("arguments"), raw.get("by"), raw.get("epoch")
    return Request(
        id=request_id,
        verb=raw["verb"],
        arguments=arguments if isinstance(arguments, dict) else {},
        by=by if isinstance(by, str) else "",
        epoch=epoch if isinstance(epoch, int) else None,
    )


def _read(path: Path) -> dict[str, Any] | None:
    # A link planted in a shared folder must not make the trainer read elsewhere.
    value = read_json(path, limit=_READ_LIMIT_BYTES, follow=False)
    return value if isinstance(value, dict) else None
