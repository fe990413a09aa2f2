"""The facts about one run in tables: numbers for the page, text for people."""

from __future__ import annotations

import calendar
import functools
import os
import pwd
import time
from collections.abc import Iterable
from typing import Any

from workbench.base.files import file_locked
from workbench.base.text import plain, share_done
from workbench.launchers.launched import Launched
from workbench.launchers.queue.outlook import place_of, queued_text
from workbench.launchers.queue.ticket import OWNER_VARIABLE
from workbench.store.evaluations import benchmark_scores, is_part, scores_by_step
from workbench.store.folder import RunFolder, read_object, stamp_in
from workbench.store.labels import name_of, read_labels
from workbench.store.missing_text import NamedText
from workbench.store.origin import Origin, origin_of
from workbench.store.reached import reached
from workbench.store.state import STALLED, RunState, actual_status, read_state, silent_seconds
from workbench.telemetry.scored_text import part_mark


def message_of(folder: RunFolder, state: RunState, status: str) -> str:
    """Return the message of a run that is in ``status`` (:func:`workbench.store.state.actual_status`)."""
    if status == "queued":
        return queued_text(folder, state)
    if status != STALLED:
        return state.message
    if state.afar:
        since = time.strftime("%H:%M:%S", time.localtime(state.heartbeat))
        why = state.message if file_locked(folder.following) else f"`workbench follow {state.afar}` looks for it again"
        return f"no news since {since} from {state.afar}{why and '; '}{why}"
    # In steps of 5 s: whoever shows only what has changed is not kept busy by it.
    seconds = 5 * int(silent_seconds(state) // 5)
    return (
        f"no sign of life for {seconds} s: process {state.pid} is suspended, swapped out or waiting for a disk; the "
        "run goes on by itself once that is over"
    )


_NOUNS = ("race:", "sweep:", "tuning:", "finetuning:")
_BEGUN = len("20260131-081500")


def experiment_name(tag: str, run_id: str) -> str:
    """Return ``race:NAME 20260131-081500``: two of one name differ in the time with which their runs' ids begin."""
    return f"{tag} {run_id[:_BEGUN]}"


def experiment_of(run_id: str, tags: Iterable[str]) -> str:
    """Return the name of a run's experiment; empty for any other run.

    Example:
        >>> experiment_of("20260131-081500-mine-s0-0a1b2c", ["good", "race:deep"]), experiment_of("a", ["race"])
        ('race:deep 20260131-081500', '')
    """
    tag = next((tag for tag in tags if tag.startswith(_NOUNS)), None)
    return "" if tag is None else experiment_name(tag, run_id)


LONGEST_REASON = 100
"""Characters of a run's error in a table."""
_REASONED = ("failed", "stopped", STALLED)


def summary(folder: RunFolder, state: RunState | None = None) -> dict[str, Any]:
    """Return the facts of one run, from one reading of its state.

    Args:
        state: a reading of it, to save a second one.

    Returns:
        ``id, name, status, progress`` (0..1), ``step, loss, heldout_loss`` (nats), ``tokens_per_second, message`` (its
        error where it failed), ``repeats`` (it failed in a way that a resume only repeats), ``missing_text`` (a path of
        its text that is not there, where it ended early; else empty); numbers it has not said yet are None. Where and
        when: ``owner`` (:func:`owner_of`), ``host``, ``where`` (job of a cluster, or URL of a run that is followed;
        else empty), ``device`` (words), ``launched`` and ``started`` (Unix seconds at which its folder was made, and at
        which it began to train; None when nothing tells, or it has not). What people said: ``tags`` (list), ``notes``;
        of which race, sweep or tuning it is: ``experiment``, empty for any other;
        newest ``scores`` of benchmarks by name, and values that each is ``held_against``, by name;
        when the trainer wrote its knobs last: ``knobs_written``, None before;
        and of a fork ``parent``: ``{"run", "step"}``, else None. Of one that waits for its turn :func:`queue_facts`.
    """
    # One reading for the whole row: a status beside the step of another moment would contradict it.
    state = state or read_state(folder)
    labels, origin = read_labels(folder), origin_of(folder)
    status = actual_status(folder, state)
    state = reached(folder, state, status)
    return {
        "id": folder.id,
        "name": name_of(folder, labels=labels),
        "status": status,
        **numbers(state),
        "message": state.error or message_of(folder, state, status),
        "repeats": state.repeats and status == "failed",
        "missing_text": NamedText(folder).missing(state, status),
        "owner": owner_of(folder),
        "host": state.host,
        "where": state.afar or str(Launched.read(folder).handle.get("where", "")),
        "device": state.device,
        "launched": launched_of(folder),
        "started": started_of(folder, state, origin),
        "tags": list(labels.tags),
        "notes": labels.notes,
        "experiment": experiment_of(folder.id, labels.tags),
        **_scores(folder),
        "knobs_written": knobs_written(folder),
        "parent": None if origin is None else {"run": origin.run, "step": origin.step},
        **queue_facts(folder, status),
    }


def numbers(state: RunState) -> dict[str, Any]:
    """Return the facts that are numbers of a state."""
    names = ("progress", "step", "loss", "heldout_loss", "tokens_per_second")
    return {name: getattr(state, name) for name in names}


def _scores(folder: RunFolder) -> dict[str, dict[str, Any]]:
    # Those of benchmarks alone, which have a file of their own.
    found = {
        name: score
        for name, (_, score) in benchmark_scores(scores_by_step(folder, {})).items()
        if score.value is not None and not is_part(name)
    }
    return {
        "scores": {name: score.value for name, score in found.items()},
        "held_against": {name: score.beside for name, score in found.items() if score.beside},
    }


def knobs_written(folder: RunFolder) -> float | None:
    """Return when the trainer last wrote its effective knobs (Unix seconds)."""
    try:
        return os.stat(folder.knobs).st_mtime
    except OSError:
        return None


def queue_facts(folder: RunFolder, status: str) -> dict[str, Any]:
    """Return ``queue_position`` (1 is next) and ``expected_start_seconds`` (rounded) of a run that waits here.

    None where it does not wait on this machine; ``expected_start_seconds`` also where nobody can tell.
    """
    place = place_of(folder) if status == "queued" else None
    if place is None:
        return {"queue_position": None, "expected_start_seconds": None}
    return {"queue_position": place.position, "expected_start_seconds": place.expected_seconds}


def owner_of(folder: RunFolder) -> str:
    """In whose name it was launched, as in the queue; else the user who owns its folder, empty where there is none.

    A user is a number where this machine knows no name.
    """
    settings = read_object(folder.launched).get("settings")
    if isinstance(settings, dict) and isinstance(named := settings.get(OWNER_VARIABLE), str) and named:
        return plain(named)
    try:
        return _user(os.stat(folder.path).st_uid)
    except OSError:
        return ""


def started_of(folder: RunFolder, state: RunState, origin: Origin | None = None) -> float | None:
    """Return the Unix time at which a run began to train; None before that.

    Args:
        origin: of a fork, which has taken none of the steps before.
    """
    own = state.step - (origin.step if origin else 0)
    # Of an earlier version, which did not write it down: it began soon after its launch, as far as anybody knows.
    return state.started or (launched_of(folder) if own > 0 else None)


def launched_of(folder: RunFolder) -> float | None:
    """Return the Unix time of the launch: that in the id, else of the recipe file; None when nothing tells."""
    try:
        if stamp := stamp_in(folder.id):
            return float(calendar.timegm(time.strptime(stamp, "%Y%m%d-%H%M%S")))
        return os.stat(folder.recipe).st_mtime
    # Digits that are no date, as in an id that somebody made up, or no recipe.
    except (OSError, ValueError):
        return None


def describe(folder: RunFolder) -> dict[str, str]:
    """Return the columns of a table of runs as text, empty where the run has said nothing; see :func:`summary`."""
    facts = summary(folder)
    parent, heldout = facts["parent"], _number(facts["heldout_loss"], ".3f")
    return {
        "run": facts["id"],
        "name": plain(facts["name"]),
        "status": facts["status"],
        "progress": share_done(facts["progress"]),
        "step": f"{facts['step']:,}",
        "loss": _number(facts["loss"], ".3f"),
        "held-out": heldout and part_mark(facts["status"]) + heldout,
        "tokens/s": _number(facts["tokens_per_second"], ",.0f"),
        "tags": " ".join(facts["tags"]),
        "forked from": "" if parent is None else f"{parent['run']} at {parent['step']:,}",
        "queue": facts["message"] if facts["status"] == "queued" else "",
        "why": _reason(facts),
    }


def _reason(facts: dict[str, Any]) -> str:
    """Return why a run failed, stalled, is lost or was stopped early, in a short line; empty for any other."""
    if facts["status"] == "lost":
        return facts["message"] if "state.json" in facts["message"] else "its processes ended without saying why"
    return plain(facts["message"].partition("\n")[0], LONGEST_REASON) if facts["status"] in _REASONED else ""


# A thousand runs of few users: the user database may be a network service.
@functools.lru_cache(maxsize=256)
def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
