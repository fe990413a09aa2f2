"""One look after a race: launch what its present look still misses, end it when nothing is left to do."""

from __future__ import annotations

import functools
from collections.abc import Callable

from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.experiments.experiment_folder import ENDED
from workbench.experiments.launching import bring, end, refused, stop, withdraw, withdrawn
from workbench.experiments.race.plan import RacePlan
from workbench.experiments.race.race_folder import RaceFolder
from workbench.experiments.race.results import verdict_as_json
from workbench.experiments.race.sentences import progress
from workbench.experiments.race.status import Standing, run_folder, standing
from workbench.launchers.queue.orphans import start_orphan
from workbench.store.state import exclusive


def advance(folder: RaceFolder, start: Callable[..., Run] = launch) -> Standing:
    """Bring a race forward as far as it goes now; safe to call at any time, from any process, any number of times.

    Args:
        start: launches a run, as :func:`workbench.client.launch.launch`.

    Raises:
        RunError: the race cannot be read, or a run not be launched (a full disk); calling again tries again.
        OSError: the race's folder cannot be written to.
    """
    with exclusive(folder.path):
        plan, status = RacePlan.read(folder), folder.read_state()["status"]
        now = standing(plan, refused(folder), withdrawn(folder))
        if status in ENDED:
            return now
        for entry, reading in now.readings.items():
            # Of an arm that has failed, or of a baseline against which no arm is left.
            if reading.status == "going" and entry not in now.wanted:
                withdraw(folder, run_folder(plan, entry), **entry._asdict())
            elif reading.status == "stopped" and reading.doing not in ("", "stopping") and entry not in now.wanted:
                stop([run_folder(plan, entry)], by=f"race {folder.id}")
        if now.over:
            for verdict in now.verdicts.values():
                folder.add_event("verdict", **verdict_as_json(plan, verdict))
            folder.write_state("failed" if now.failed else "finished", now.failed)
            return now
        for entry in now.wanted:
            if now.readings[entry].doing == "queued":
                # After a reboot it waits without a process, and nobody else may come to start it.
                start_orphan(run_folder(plan, entry))
        room = plan.at_once - now.going
        for entry in [entry for entry in now.wanted if now.readings[entry].status != "going"][: max(0, room)]:
            weights = plan.initial.get(str(entry.seed))
            begin = functools.partial(start, initial=weights) if weights else start
            bring(
                folder, run_folder(plan, entry), now.readings[entry], functools.partial(plan.recipe, entry), begin,
                title=entry.title, **entry._asdict(),
            )  # fmt: skip
        if folder.read_state()["message"] != (message := progress(plan, now)):
            folder.write_state(status, message)
    return now


def cancel(folder: RaceFolder) -> list[str]:
    """End a race; stops its runs, each with a checkpoint, and returns their ids. Its verdicts so far stay.

    Raises:
        RunError: the race has ended, and none of its runs goes on.
    """

    def stop_runs() -> list[str]:
        plan = RacePlan.read(folder)
        readings = standing(plan).readings
        return stop(run_folder(plan, entry) for entry, reading in readings.items() if reading.status == "going")

    return end(folder, stop_runs)
