"""One look after a tuning: its sweep goes on, then its race does, then it ends. It launches nothing itself."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from filelock import FileLock, Timeout

from workbench.base.errors import RunError, WorkbenchError
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.experiments.experiment_folder import ENDED, ExperimentFolder
from workbench.experiments.launching import end
from workbench.experiments.race import advance as racing
from workbench.experiments.race.validate import enter
from workbench.experiments.sweep import advance as sweeping
from workbench.experiments.tune.plan import BEFORE, TUNED, TuningPlan
from workbench.experiments.tune.results import TuningResult
from workbench.experiments.tune.sentences import cannot_race, progress
from workbench.experiments.tune.status import Standing, standing
from workbench.experiments.tune.tuning_folder import TuningFolder
from workbench.store.folder import write_json
from workbench.store.state import exclusive

_driven: dict[ExperimentFolder, FileLock] = {}
"""Locks of the sweeps and races that this process drives."""


def advance(folder: TuningFolder, start: Callable[..., Run] = launch, rates: Any = None) -> Standing:
    """Bring a tuning forward as far as it goes now; safe to call at any time, from any process, any number of times.

    Args:
        start: launches a run, as :func:`workbench.client.launch.launch`. rates: see :func:`workbench.forecast`.

    Raises:
        RunError: the tuning cannot be read, or a run not be launched (a full disk); calling again tries again.
        OSError: a folder cannot be written to.
    """
    with exclusive(folder.path):
        plan, status = TuningPlan.read(folder), folder.read_state()["status"]
        if status in ENDED:
            return standing(plan)
        if _carried(plan.sweep, lambda: sweeping.advance(plan.sweep, start, rates)):
            return _going(folder, plan)
        now = standing(plan)
        if why := _ended_badly(plan.sweep):
            return _end(folder, plan, "failed", why)
        if not now.changed:
            return _end(folder, plan, "finished")
        if not plan.race.plan.is_file():
            if why := cannot_race(plan, now):
                return _end(folder, plan, "failed", why)
            try:
                _begin_race(folder, plan, now, rates or sweeping.rates_of(plan.sweep))
            except RunError:
                raise
            except WorkbenchError as error:
                return _end(folder, plan, "failed", f"what was found cannot be raced: {error}")
        if _carried(plan.race, lambda: racing.advance(plan.race, start)):
            return _going(folder, plan)
        why = _ended_badly(plan.race)
        return _end(folder, plan, "failed" if why else "finished", why)


def cancel(folder: TuningFolder) -> list[str]:
    """End a tuning with its sweep or race; stops their runs, each with a checkpoint, and returns their ids.

    Raises:
        RunError: the tuning has ended, and none of its runs goes on.
    """

    def stop_runs() -> list[str]:
        plan = TuningPlan.read(folder)
        stopped: list[str] = []
        if plan.sweep.plan.is_file():
            with suppress(RunError):  # it has ended
                stopped += sweeping.cancel(plan.sweep)
        if plan.race.plan.is_file():
            with suppress(RunError):
                stopped += racing.cancel(plan.race)
        return stopped

    return end(folder, stop_runs)


def _carried(part: ExperimentFolder, look: Callable[[], Any]) -> bool:
    """Bring a stage forward, unless it has ended or somebody else does; whether it goes on."""
    if part.read_state()["status"] in ENDED:
        return False
    lock = _driven.setdefault(part, part.driver_lock())
    if not lock.is_locked:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return part.read_state()["status"] not in ENDED
    look()
    if part.read_state()["status"] not in ENDED:
        return True
    _driven.pop(part).release()
    return False


def _begin_race(folder: TuningFolder, plan: TuningPlan, now: Standing, rates: Any) -> None:
    arms = {BEFORE: plan.base(), TUNED: now.recipe}
    race = enter(arms, plan.each, plan.race_seeds, score=plan.score, name=plan.name, runs_dir=plan.runs_dir,
                 rates=rates)  # fmt: skip
    write_json(folder.evidence, dict(TuningResult.of(plan, now, folder.read_state()["status"])))
    folder.add_event("tuned", changed={path: list(values) for path, values in now.changed.items()})
    # What a driver that was killed left there is no race yet: its plan is written last.
    shutil.rmtree(plan.race.path, ignore_errors=True)
    plan.race.create(replace(race, id=plan.id, folder=plan.folder, part_of=folder.tag).to_dict())


def _going(folder: TuningFolder, plan: TuningPlan) -> Standing:
    now, state = standing(plan), folder.read_state()
    if state["message"] != (message := progress(plan, now)):
        folder.write_state(state["status"], message)
    return now


def _ended_badly(part: ExperimentFolder) -> str:
    """Why a stage has no outcome; empty where it has."""
    state = part.read_state()
    why = f": {state['message']}" if state["message"] else ""
    return "" if state["status"] == "finished" else f"its {part.noun} {state['status']}{why}"


def _end(folder: TuningFolder, plan: TuningPlan, status: str, error: str = "") -> Standing:
    now = standing(plan)
    write_json(folder.evidence, dict(TuningResult.of(plan, now, status, error=error)))
    folder.write_state(status, error)
    return now
