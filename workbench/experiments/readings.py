"""The runs of an experiment as they are now, read from their folders alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from workbench.base.json_lines import number
from workbench.experiments.budget import Share
from workbench.store.evaluations import read_evaluations
from workbench.store.folder import RunFolder, read_object
from workbench.store.full_disk import DISK_FULL
from workbench.store.state import actual_status, read_state
from workbench.store.trash import wherever
from workbench.telemetry.baselines import References

RunStatus = Literal["missing", "going", "lost", "stopped", "failed", "done"]
"""``stopped`` by the experiment itself, which did not need it any more."""
_MOST_FINISHED = 4096
MOST_ATTEMPTS = 3
"""A run that was lost so often, to reboots, to a killed supervisor or for want of space, has failed."""
SAID = ("device", "cores", "threads", "python", "git")
"""Keys of :func:`trained_on`; ``git`` is the checkout's revision, None where the package was installed."""


class Reading(NamedTuple):
    """One run of an experiment, as it is now.

    Attributes:
        loss, bits_per_byte: held-out, of a run that is done; NaN else.
        left_floor: the loss lies at least 0.1 nats below word frequencies.
        doing, progress: for people; ``progress`` is the spent share of the budget.
        seconds: of training, of a run that is done; NaN else.
        heldout: step, tokens, nats and bits per byte of every evaluation of a run that is done.
        reached_floor: the loss lies at word frequencies, or below.
    """

    status: RunStatus
    loss: float = math.nan
    bits_per_byte: float = math.nan
    left_floor: bool = False
    doing: str = ""
    progress: float = 0.0
    error: str = ""
    seconds: float = math.nan
    heldout: tuple[tuple[float, float, float, float], ...] = ()
    reached_floor: bool = False

    def scored(self, score: str) -> float:
        """Return the score, ``nats`` or ``bits_per_byte``; NaN of a run that is not done."""
        return self.loss if score == "nats" else self.bits_per_byte

    def curve(self, score: str, share: Share) -> list[tuple[float, float]]:
        """Return reference seconds and score of every evaluation that has both."""
        return curve_of(self.heldout, score, share)


class Status(Protocol):
    """The state of an experiment, as its driver needs it.

    Attributes:
        runs: every job with its reading. wanted: jobs to start, in order.
        over: nothing is left to do. failed: why it has no outcome.
    """

    @property
    def runs(self) -> Sequence[tuple[Any, Reading]]: ...
    @property
    def wanted(self) -> Sequence[Any]: ...
    @property
    def over(self) -> bool: ...
    @property
    def failed(self) -> str: ...


_finished: dict[RunFolder, tuple[tuple[int, int], Reading]] = {}
"""Readings of finished runs, which stay so: a driver looks at all of them twice a second, on cores that train."""


def reading_of(folder: RunFolder, refused: Mapping[str, str]) -> Reading:
    """Read one run from its folder.

    Args:
        refused: by run id, why it could not be launched.
    """
    if not folder.path.is_dir():
        # What a run has scored stays known while the trash has it.
        if read_state(kept := wherever(folder)).status == "finished":
            return _done(read_evaluations(kept))
        why = refused.get(folder.id)
        return Reading("missing") if why is None else Reading("failed", error=f"{folder.id}: {why}")
    written = _stamp(folder)
    known, found = _finished.get(folder, ((0, 0), Reading("done")))
    if written == known:
        return found
    state = read_state(folder)
    status = actual_status(folder, state)
    if status == "finished":
        if len(_finished) >= _MOST_FINISHED:
            _finished.clear()
        _finished[folder] = written, (found := _done(read_evaluations(folder)))
        return found
    if status in ("failed", "stopped"):
        why = state.error or ("somebody stopped it" if status == "stopped" else "no reason was written")
        again = why.startswith(DISK_FULL) and state.attempt < MOST_ATTEMPTS
        return Reading("lost" if again else "failed", progress=state.progress, error=f"{folder.id}: {why}")
    if status == "lost":
        error = f"{folder.id}: its processes ended without a message, {state.attempt} times"
        return Reading("lost" if state.attempt < MOST_ATTEMPTS else "failed", progress=state.progress, error=error)
    return Reading("going", doing=status, progress=state.progress)


def cancelled(readings: Mapping[Any, Reading]) -> dict[Any, Reading]:
    """Return the readings of a cancelled experiment: runs that did not end by themselves were stopped, not failed."""
    return {job: each if each.status in ("done", "going") else Reading("missing", progress=each.progress)
            for job, each in readings.items()}  # fmt: skip


def _stamp(folder: RunFolder) -> tuple[int, int]:
    """Return which file the state of a run stands in now: each write makes a new one."""
    try:
        status = folder.state.stat()
    except OSError:
        return -1, -1
    return status.st_ino, status.st_mtime_ns


def _done(evaluations: Mapping[str, Any]) -> Reading:
    result = evaluations.get("result")
    result = result if isinstance(result, dict) else {}
    loss, bits, seconds = (number(result.get(key)) for key in ("heldout_loss", "bits_per_byte", "seconds"))
    learned = References.of(evaluations, {}, causal=False).learned(loss)
    left = learned in ("neighbours", "context")
    return Reading(
        "done", loss, bits, left, "finished", 1.0, seconds=seconds, heldout=heldout_of(evaluations),
        reached_floor=left or learned == "word frequencies",
    )  # fmt: skip


def curve_of(
    heldout: Iterable[tuple[float, float, float, float]], score: str, share: Share
) -> list[tuple[float, float]]:
    """Return :meth:`Reading.curve` of what :func:`heldout_of` found, also of a run that is not done."""
    points = [
        (share.seconds_at(step, tokens), loss if score == "nats" else bits) for step, tokens, loss, bits in heldout
    ]
    return [point for point in points if all(map(math.isfinite, point))]


def heldout_of(evaluations: Mapping[str, Any]) -> tuple[tuple[float, float, float, float], ...]:
    """Return step, tokens, nats and bits per byte of every evaluation; NaN for what was not written."""
    recorded = evaluations.get("heldout")
    points = [point for point in recorded if isinstance(point, dict)] if isinstance(recorded, list) else []
    keys = ("step", "tokens", "loss", "bits_per_byte")
    return tuple(tuple(number(point.get(key)) for key in keys) for point in points)  # type: ignore[misc]


def trained_on(folders: Iterable[RunFolder]) -> list[dict[str, Any]]:
    """List the machines and revisions that runs were trained on, with their number as ``runs``; most frequent first.

    Beside :data:`SAID` each has ``torch`` and ``workbench``, the package's own version; no host name.
    """
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for folder in folders:
        known = read_object(wherever(folder).environment)
        if known:
            packages = known.get("packages") or {}
            setting = {key: known.get(key) for key in SAID} | {key: packages.get(key) for key in ("torch", "workbench")}
            found.setdefault(tuple(setting.values()), {**setting, "runs": 0})["runs"] += 1
    return sorted(found.values(), key=lambda each: -each["runs"])
