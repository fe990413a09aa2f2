"""Runs of an experiment: each is launched once, resumed where it was lost, and stopped with the experiment."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from workbench.base.errors import RunError, WorkbenchError
from workbench.client.run import Run
from workbench.experiments.experiment_folder import ENDED, ExperimentFolder
from workbench.experiments.readings import Reading
from workbench.store import control
from workbench.store.folder import RunFolder
from workbench.store.labels import label
from workbench.store.state import DISK_FULL, exclusive

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe

ROOM_BYTES = 1 << 20
"""A run that failed for want of space is not resumed before there is more than this."""


def bring(
    folder: ExperimentFolder,
    run: RunFolder,
    reading: Reading,
    recipe: Callable[[], Recipe],
    start: Callable[..., Run],
    **facts: Any,
) -> None:
    """Launch a run of an experiment, or resume it where it was lost; says so in the experiment's events.

    Args:
        start: launches a run, as :func:`workbench.client.launch.launch`.
        facts: what the events say of it, too; ``title`` becomes a note of the run.

    Raises:
        RunError: it could not be launched (a full disk); trying again may help.
        OSError: the experiment's folder cannot be written to.
    """
    title = facts.pop("title")
    if reading.status in ("lost", "stopped"):
        if DISK_FULL in reading.error and shutil.disk_usage(run.path).free < ROOM_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(run.path))
        with contextlib.suppress(RunError):  # somebody was faster
            Run(run).resume()
            folder.add_event("resumed", run=run.id, **facts)
        return
    try:
        started = start(recipe(), runs_dir=str(run.path.parent), run_id=run.id)
    except RunError:
        raise
    except WorkbenchError as error:
        # Of this run alone: the others go on.
        folder.add_event("refused", run=run.id, error=str(error), **facts)
        return
    folder.add_event("launched", run=run.id, **facts)
    with contextlib.suppress(RunError):
        label(started.folder, add=[folder.tag], notes=f"{folder.noun} {folder.id}: {title}")


def refused(folder: ExperimentFolder) -> dict[str, str]:
    """Runs that could not be launched, and why, by id."""
    found = [event for event in folder.read_events() if event.get("kind") == "refused"]
    return {str(event.get("run")): str(event.get("error")) for event in found}


def withdraw(folder: ExperimentFolder, run: RunFolder, **facts: Any) -> None:
    """Stop a run that the experiment does not need any more; says so in the experiment's events.

    Raises:
        OSError: the experiment's folder cannot be written to.
    """
    # Before it stops: a run that was stopped by nobody known would have failed. Killed in between, a driver leaves it
    # to the next one to stop it.
    folder.add_event("withdrawn", run=run.id, **facts)
    stop([run], by=f"{folder.noun} {folder.id}")


def withdrawn(folder: ExperimentFolder) -> set[str]:
    """Ids of runs that :func:`withdraw` stopped and nobody has resumed since."""
    last = {str(event.get("run")): event.get("kind") for event in folder.read_events()}
    return {run for run, kind in last.items() if kind == "withdrawn"}


def end(folder: ExperimentFolder, stop_runs: Callable[[], list[str]]) -> list[str]:
    """Mark an experiment as cancelled and stop its runs; returns their ids.

    Of one that was cancelled before, those that still go: whoever did so may have been killed before it stopped them.

    Raises:
        RunError: it has ended, and nothing of it goes on.
    """
    with exclusive(folder.path):
        status = folder.read_state()["status"]
        if going := status not in ENDED:
            folder.write_state("cancelled", "")
            folder.add_event("cancelled")
    stopped = stop_runs() if going or status == "cancelled" else []
    if not (going or stopped):
        raise RunError(f"{folder.noun} '{folder.id}' is {status}: there is nothing to cancel")
    return stopped


def stop(runs: Iterable[RunFolder], by: str = "") -> list[str]:
    """Stop runs, each with a checkpoint and whoever steers it; returns the ids of those that nobody had asked to.

    Args:
        by: who asks, for people; else user and machine.
    """
    stopped = []
    for run in runs:
        if any(request.verb == "stop" for request in control.pending(run)):
            continue
        with contextlib.suppress(RunError):  # it ended meanwhile
            Run(run).ask("stop", take_over=True, by=by)
            stopped.append(run.id)
    return stopped
