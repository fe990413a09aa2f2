"""One look after a race: launch what its present look still misses, end it when nothing is left to do."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from workbench.errors import RunError, WorkbenchError
from workbench.racing.plan import Entry, RacePlan
from workbench.racing.race_folder import ENDED, RaceFolder
from workbench.racing.results import verdict_as_json
from workbench.racing.sentences import progress
from workbench.racing.standing import Standing, run_folder, standing
from workbench.runs.labels import label
from workbench.runs.launch import launch
from workbench.runs.queue.orphans import start_orphan
from workbench.runs.run import Run
from workbench.runs.state import exclusive


def advance(folder: RaceFolder, start: Callable[..., Run] = launch) -> Standing:
    """Bring a race forward as far as it goes now; safe to call at any time, from any process, any number of times.

    Args:
        start: launches a run, as :func:`workbench.runs.launch.launch`.

    Raises:
        RunError: the race cannot be read, or a run not be launched (a full disk); calling again tries again.
        OSError: the race's folder cannot be written to.
    """
    with exclusive(folder.path):
        plan, status = RacePlan.read(folder), folder.read_state()["status"]
        now = standing(plan, refused(folder))
        if status in ENDED:
            return now
        if now.over:
            for verdict in now.verdicts.values():
                folder.add_event("verdict", **verdict_as_json(plan, verdict))
            folder.write_state("failed" if now.failed else "finished", now.failed)
            return now
        for entry, reading in now.readings.items():
            if reading.doing == "queued":
                # After a reboot it waits without a process, and nobody else may come to start it.
                start_orphan(run_folder(plan, entry))
        room = plan.at_once - sum(reading.status == "going" for reading in now.readings.values())
        for entry in [entry for entry in now.wanted if now.readings[entry].status != "going"][: max(0, room)]:
            _bring(folder, plan, entry, now, start)
        if folder.read_state()["message"] != (message := progress(plan, now)):
            folder.write_state(status, message)
    return now


def _bring(folder: RaceFolder, plan: RacePlan, entry: Entry, now: Standing, start: Callable[..., Run]) -> None:
    """Launch the run of an entry, or resume it where it was lost."""
    run_id, facts = plan.run_id(entry), entry._asdict()
    if now.readings[entry].status == "lost":
        with contextlib.suppress(RunError):  # somebody was faster
            Run(run_folder(plan, entry)).resume()
            folder.add_event("resumed", run=run_id, **facts)
        return
    try:
        run = start(plan.recipe(entry), runs_dir=plan.runs_dir, run_id=run_id)
    except RunError:
        raise
    except WorkbenchError as error:
        # Of this arm alone: the others go on.
        folder.add_event("refused", run=run_id, error=str(error), **facts)
        return
    folder.add_event("launched", run=run_id, **facts)
    with contextlib.suppress(RunError):
        label(run.folder, add=["race"], notes=f"race {plan.id}: {entry.title}")


def refused(folder: RaceFolder) -> dict[str, str]:
    """Runs that could not be launched, and why, by id."""
    found = [event for event in folder.read_events() if event.get("kind") == "refused"]
    return {str(event.get("run")): str(event.get("error")) for event in found}


def cancel(folder: RaceFolder) -> list[str]:
    """End a race; stops its runs, each with a checkpoint, and returns their ids. Its verdicts so far stay.

    Raises:
        RunError: the race has ended.
    """
    with exclusive(folder.path):
        status = folder.read_state()["status"]
        if status in ENDED:
            raise RunError(f"race '{folder.id}' is {status}: there is nothing to cancel")
        folder.write_state("cancelled", "somebody cancelled it")
        folder.add_event("cancelled")
    plan, stopped = RacePlan.read(folder), []
    for entry, reading in standing(plan).readings.items():
        if reading.status == "going":
            with contextlib.suppress(RunError):  # it ended meanwhile
                Run(run_folder(plan, entry)).stop()
                stopped.append(plan.run_id(entry))
    return stopped
