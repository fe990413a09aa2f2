"""Fork: a new run that goes on from a checkpoint of another, running or ended, under an edited recipe."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.base.errors import RunError
from workbench.client.fork_point import ForkPoint
from workbench.launchers.create import Log, create, start
from workbench.launchers.launched import Launched
from workbench.launchers.queue.turn import QUEUED_BY, check_room
from workbench.store import control, lease
from workbench.store.checkpoints import checkpoints, duplicate, identity_of, problem_with, state_of
from workbench.store.folder import RunFolder, read_object, write_json
from workbench.store.in_process import IN_PROCESS, refuse_elsewhere
from workbench.store.labels import name_of
from workbench.store.origin import origin_of
from workbench.store.state import lock_held, take_lock, write_state
from workbench.telemetry.streams import add_event

if TYPE_CHECKING:
    from workbench.launchers.launcher import Launcher
    from workbench.recipes.recipe import Recipe


def fork(
    folder: RunFolder,
    changes: Mapping[str, Any],
    step: int | None = None,
    on: str | Launcher | None = None,
    say: Log | None = None,
) -> RunFolder:
    """Go on from a checkpoint of a run in a new run beside it, in the background; returns at once.

    Weights, optimizer state, place in the data, stage of growth and state of the batch rule are taken over, and every
    draw depends on the seed and the step alone: without changes the fork repeats its parent bit for bit, but for knobs
    that were turned later.

    Args:
        changes: as for :meth:`workbench.recipes.recipe.Recipe.with_`; :func:`workbench.recipes.changes.fork` says
        which are possible. step: of the checkpoint; None for the newest that is whole.
        on: as for :func:`workbench.client.launch.launch`; None: as its parent on a cluster, else on this machine.
        say: called with a line for each newer checkpoint that is damaged, and where it waits for its turn here.

    Raises:
        RecipeError: a change that a fork cannot make, or a budget that is spent already.
        RunError: no such checkpoint, it is damaged, or the new run cannot be made.
    """
    # Slower to import than all that a list of runs needs.
    from workbench.launchers.launcher import launcher_named, launcher_of

    if on is None:
        own = Launched.read(folder).on in (*QUEUED_BY, IN_PROCESS)
        launcher = launcher_named("local") if own else launcher_of(folder, again=True)
    else:
        launcher = launcher_named(on)
    if launcher.queues:
        check_room()
    new, lock = create_fork(folder, changes, step, launcher)
    told = None if say is None else lambda line: say(f"{new.id}: {line}")
    point = ForkPoint.of(new)
    if told is not None:
        for problem in read_object(new.origin).get("passed_over", []):
            told(f"{problem}; it goes on from step {point.step:,}")
        if scarce := point.scarce(point.recipe):
            told(scarce)
    start(new, lock, launcher, resume=True, say=told)
    _tell_parent(folder, new)
    return new


def create_fork(
    folder: RunFolder, changes: Mapping[str, Any], step: int | None = None, launcher: Launcher | None = None
) -> tuple[RunFolder, int]:
    """Create the folder of a fork, without a process yet; returns it and its lock's descriptor. See :func:`fork`."""
    from workbench.recipes.changes import fork as fork_recipe
    from workbench.recipes.recipe import Recipe

    refuse_elsewhere(folder, "be forked")
    recipe, called = Recipe.load(folder.recipe), name_of(folder)

    def prepare(draft: RunFolder) -> Recipe:
        # First of all a copy: what the parent deletes from now on no longer matters, and what is checked is trained.
        copy, passed_over = _copy_checkpoint(folder, step, draft.checkpoints)
        saved = state_of(copy)
        forked = fork_recipe(recipe, saved, changes, called)
        environment, launched = (read_object(path) for path in (folder.environment, folder.launched))
        origin = {
            "run": folder.id,
            "name": called,
            "step": saved["step"],
            "seconds": saved["seconds"],
            "tokens": saved.get("tokens", 0),
            "useful_flops": saved.get("useful_flops", 0),
            "diff": forked.diff,
            "fresh": forked.fresh,
            "overrides": forked.overrides,
            "checkpoint": identity_of(copy),
            "passed_over": passed_over,
            "data": environment.get("data"),
        }
        write_json(draft.origin, origin)
        # Shown while it starts: it does not begin at 0.
        if (before := origin_of(draft)) is not None:
            spent = before.share(forked.recipe.to_dict()["budget"])
            tokens, seconds = int(before.tokens), before.seconds
            write_state(
                draft, step=before.step, tokens=tokens, progress=spent, tokens_before=tokens, seconds_before=seconds
            )
        # Relative paths of the recipe start where they started for the parent.
        if isinstance(launched.get("folder"), str):
            Launched.here("local" if launcher is None else launcher.kind, launched["folder"]).write(draft)
        return forked.recipe

    return create(folder.path.parent, prepare, launcher=launcher)


def _copy_checkpoint(folder: RunFolder, step: int | None, target: Path) -> tuple[Path, list[str]]:
    """Copy a whole checkpoint of the run to ``target``; returns it, and the problems of newer ones.

    The one of ``step``, or the newest that verifies.
    """
    problems: list[str] = []
    for path in _wanted(folder, step):
        copy = target / path.name
        try:
            duplicate(path, copy)
            problem = problem_with(copy)
        except FileNotFoundError:
            problem = "it was deleted meanwhile"
        except PermissionError as error:
            problem = f"it cannot be read ({error})"
        if problem is None:
            return copy, problems
        problems.append(f"{path.name}: {problem}")
        shutil.rmtree(copy, ignore_errors=True)
    why = "; ".join(problems)
    if step is not None and (others := [each for each in _steps(checkpoints(folder.checkpoints)) if each != str(step)]):
        raise RunError(f"run '{folder.id}' cannot be forked from {why}; its other checkpoints are {', '.join(others)}")
    raise RunError(f"no checkpoint of run '{folder.id}' can be forked from ({why})")


def _steps(paths: Iterable[Path]) -> list[str]:
    return [path.name.removeprefix("step-") for path in paths]


def _wanted(folder: RunFolder, step: int | None) -> list[Path]:
    """Return the checkpoints that a fork may begin with, the best first."""
    have = checkpoints(folder.checkpoints)
    if not have:
        raise RunError(
            f"run '{folder.id}' has no checkpoint to fork from; while it runs, `workbench checkpoint {folder.id}` "
            "saves one"
        )
    wanted = [path for path in reversed(have) if step is None or path.name == f"step-{step}"]
    if not wanted:
        names = ", ".join(_steps(have))
        raise RunError(f"run '{folder.id}' has no checkpoint of step {step}; it has those of {names}")
    return wanted


def _tell_parent(folder: RunFolder, fork: RunFolder) -> None:
    """Have the parent's telemetry say that it was forked; a fork is no worse where that cannot be."""
    origin = read_object(fork.origin)
    arguments = {"run": fork.id, "step": origin.get("step", 0)}
    with contextlib.suppress(RunError, OSError):
        if lock_held(folder):
            # Telemetry has one writer: its trainer.
            control.send(folder, control.FORKED, **arguments)
            return
        # Held, so that nobody resumes the run while we write.
        lock = take_lock(folder)
        try:
            text = control.fork_text(arguments, lease.whoami())
            add_event(folder.telemetry, arguments["step"], "fork", text, run=fork.id)
        finally:
            os.close(lock)
