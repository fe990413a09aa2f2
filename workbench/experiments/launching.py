"""Runs of an experiment: each is launched once, resumed where it was lost, and stopped with the experiment."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterable
from typing import Any

from workbench.base.errors import RunError, WorkbenchError
from workbench.client.run import Run
from workbench.experiments.experiment_folder import ENDED, ExperimentFolder
from workbench.experiments.plan import RunsPlan
from workbench.experiments.readings import Reading, Status
from workbench.launchers.queue.orphans import start_orphan
from workbench.store import control
from workbench.store.folder import RunFolder
from workbench.store.full_disk import DISK_FULL
from workbench.store.labels import label
from workbench.store.state import exclusive

ROOM_BYTES = 1 << 20
"""A run that failed for want of space is not resumed before there is more than this."""


def start_wanted(folder: ExperimentFolder, plan: RunsPlan, now: Status, start: Callable[..., Run] | None) -> None:
    """Start the runs that an experiment wants, as far as there is room for them.

    Args:
        start: launches a run; None for :func:`workbench.client.launch.launch`.

    Raises:
        RunError: a run could not be launched (a full disk); trying again may help.
        OSError: the experiment's folder cannot be written to.
    """
    known = {plan.run_folder(job): each for job, each in now.runs}
    for run, each in known.items():
        if each.doing == "queued":
            # After a reboot it waits without a process, and nobody else may come to start it.
            start_orphan(run)
    room = plan.at_once - sum(each.status == "going" for each in known.values())
    missing = [job for job in now.wanted if known[plan.run_folder(job)].status != "going"]
    for job in missing[: max(0, room)]:
        bring(folder, plan, job, known[plan.run_folder(job)], start)


def bring(
    folder: ExperimentFolder, plan: RunsPlan, job: Any, reading: Reading, start: Callable[..., Run] | None = None
) -> None:
    """Launch a job's run, or resume it where it was lost; writes an event.

    Raises:
        RunError: it could not be launched (a full disk); trying again may help.
        OSError: the experiment's folder cannot be written to.
    """
    from workbench.client.launch import launch

    run, facts = plan.run_folder(job), plan.facts_of(job)
    if reading.status in ("lost", "stopped"):
        if DISK_FULL in reading.error and shutil.disk_usage(run.path).free < ROOM_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(run.path))
        with contextlib.suppress(RunError):  # somebody was faster
            Run(run).resume()
            folder.add_event("resumed", run=run.id, **facts)
        return
    options = {"runs_dir": str(run.path.parent), "run_id": run.id, **plan.launch_options(job)}
    try:
        started = (start or launch)(plan.recipe_of(job), **options)
    except RunError:
        raise
    except WorkbenchError as error:
        # Of this run alone: the others go on.
        folder.add_event("refused", run=run.id, error=str(error), **facts)
        return
    folder.add_event("launched", run=run.id, **facts)
    with contextlib.suppress(RunError):
        label(started.folder, add=[folder.tag], notes=f"{folder.noun} {folder.id}: {plan.title_of(job)}")


def refused(folder: ExperimentFolder) -> dict[str, str]:
    """Return why runs could not be launched, by their id."""
    found = [event for event in folder.read_events() if event.get("kind") == "refused"]
    return {str(event.get("run")): str(event.get("error")) for event in found}


def withdraw(folder: ExperimentFolder, plan: RunsPlan, job: Any) -> None:
    """Stop a run that the experiment does not need any more; writes an event.

    Raises:
        OSError: the experiment's folder cannot be written to.
    """
    run = plan.run_folder(job)
    # Before it stops: a run that was stopped by nobody known would have failed. Killed in between, a driver leaves it
    # to the next one to stop it.
    folder.add_event("withdrawn", run=run.id, **plan.facts_of(job))
    stop([run], by=f"{folder.noun} {folder.id}")


def withdrawn(folder: ExperimentFolder) -> set[str]:
    """Return the ids of runs that :func:`withdraw` stopped and nobody has resumed since."""
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
