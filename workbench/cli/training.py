"""``workbench train`` and ``workbench launch``: from options to a recipe to a run."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from workbench.base.assignments import assignment
from workbench.base.errors import RecipeError, RunError, RunFailed
from workbench.base.text import many, plain
from workbench.cli.unattended import WaitForSpace, somebody_there
from workbench.cli.unread import outliving_readers
from workbench.client.run import Run
from workbench.client.summary import queue_facts
from workbench.launchers import fork_server
from workbench.launchers.supervisor import REPORT_LIMIT_SECONDS
from workbench.plots.terminal import follow
from workbench.store.evaluations import read_evaluations
from workbench.store.folder import read_object
from workbench.telemetry.profile_table import STEPS, profile_table

if TYPE_CHECKING:
    from workbench.launchers.launcher import Launcher
    from workbench.recipes.recipe import Recipe
    from workbench.store.result import Result

BYTES_PER_TOKEN = 32
"""More than any tokenizer's tokens have on average: text of fewer bytes may not fill a batch."""


def recipe_from(options: argparse.Namespace) -> Recipe:
    """Return the recipe that ``--preset`` or ``--recipe`` names, with what the other options change in it.

    Raises:
        RecipeError: none was named, or something in it is unknown or out of bounds.
        DataError: ``--text`` names nothing that can be read.
    """
    from workbench.recipes import presets
    from workbench.recipes.recipe import Recipe

    if options.recipe:
        recipe = Recipe.load(options.recipe)
    elif options.preset:
        recipe = presets.get(options.preset)
    else:
        raise RecipeError(f"what to train? Give --preset NAME or --recipe FILE; presets: {', '.join(presets.names())}")
    # One change: no option may undo another.
    return recipe.edited([*text_edits(options.text), *_changes(options)])


def _changes(options: argparse.Namespace) -> list[tuple[str, Any]]:
    """Return path and value of what ``--set``, ``--budget``, ``--seed`` and ``--name`` change."""
    named = {"budget": options.budget, "seed": options.seed, "name": options.name}
    return [*map(assignment, options.set), *((key, value) for key, value in named.items() if value is not None)]


def text_edits(paths: list[str]) -> list[tuple[str, Any]]:
    """Return the edits that make a recipe train on these files and folders; none for no path."""
    from workbench.choices.data.files import check_paths

    if not paths:
        return []
    # Now, where somebody looks, instead of a moment later in the run's log.
    check_paths(tuple(paths), "--text")
    # The preset's held-out text does not belong to this one.
    return [("data", "files"), ("data.paths", paths), ("data.heldout_paths", [])]


def _launchable(options: argparse.Namespace) -> Recipe:
    """Return the recipe of a launch. Text of ``--text`` that may not fill a batch is prepared first,
    and so refused here.

    Raises:
        RecipeError, DataError: as for :func:`recipe_from`, or the text is too small to train on.
    """
    from workbench.choices.data.files import find_files
    from workbench.choices.data.prepare import prepare

    recipe = recipe_from(options)
    _warn(recipe)
    size = sum(path.stat().st_size for path in find_files(tuple(options.text), "--text"))
    # Nothing is done twice: the run reads from the cache what is prepared here. A larger text always fills a batch.
    if options.text and size < BYTES_PER_TOKEN * recipe.data.longest * recipe.data.most_rows:
        prepare(recipe.data, say=lambda line: None)
    return recipe


def launch(options: argparse.Namespace) -> int:
    """Start in the background, print the run id."""
    from workbench.client.launch import launch as start

    with _held():
        # On stderr: stdout holds the id and nothing else.
        run = start(_launchable(options), _launcher(options.on, options), options.runs, **_queued(options))
    status = run.status
    answer = {"run": run.id, "state": status, "folder": str(run.folder.path), **queue_facts(run.folder, status)}
    print(json.dumps(answer) if options.json else run.id)
    return 0


@contextlib.contextmanager
def _held() -> Iterator[None]:
    """Let the trainer load torch on another core while this process loads it to read the recipe."""
    ours = fork_server.hold()
    try:
        yield
    finally:
        if ours:
            fork_server.release()


def _launcher(on: str, options: argparse.Namespace) -> Launcher:
    from workbench.launchers.launcher import launcher_named

    knobs: dict[str, Any] = {} if options.processes is None else {"processes": options.processes}
    return launcher_named(on, **knobs, **({"oversubscribe": True} if options.oversubscribe else {}))


def _queued(options: argparse.Namespace) -> dict[str, Any]:
    return {"queue": not options.now, "priority": options.priority, "say": _say}


def _warn(recipe: Recipe) -> None:
    """Say what the Lab says beside its button, where nobody can be asked."""
    from workbench.forecasting.forecast import unusual

    if far := unusual(recipe):
        _say(f"warning: {' '.join(far)}")


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def fork(options: argparse.Namespace) -> int:
    """Go on from a checkpoint of a run in a new run, in the background; prints its id."""
    run = Run(options.run, options.runs).fork(options.checkpoint, say=_say, **dict(_changes(options)))
    origin = run.origin
    # Written before the launch.
    assert origin is not None
    _warn(run.recipe)
    if options.json:
        parent = {"run": origin.run, "step": origin.step}
        answer = {"run": run.id, "state": run.status, "folder": str(run.folder.path), "parent": parent}
        print(json.dumps({**answer, "diff": origin.diff, "fresh": origin.fresh}))
        return 0
    if origin.fresh:
        # On stderr: stdout holds the id and nothing else.
        print(f"the optimizer begins without state, since {', '.join(origin.fresh)} changed", file=sys.stderr)
    print(run.id)
    return 0


def train(options: argparse.Namespace) -> int:
    """Train in the foreground. Ctrl-C, SIGTERM or SIGHUP stops the run with a checkpoint, a Ctrl-C after it ends it.

    It goes on where nobody reads its output any longer (``| head``).

    Returns:
        1 after a run that was stopped so, since it is not what was asked for; else 0.

    Raises:
        RunFailed: the run failed, or has waited for a full or read-only disk, which nobody is there to mend.
        TargetMissed: it ended above ``--target-loss``.
    """
    with outliving_readers():
        return _trained(options)


def _trained(options: argparse.Namespace) -> int:
    from workbench.client.launch import launch as start
    from workbench.store.result import check_target

    check_target(options.target_loss, "--target-loss")
    with _held():
        # Complete before anything starts: a mistyped knob leaves no run folder behind.
        recipe = _launchable(options)
        if options.profile and recipe.budget.unit == "steps" and recipe.budget.amount <= 2 * STEPS:
            raise RecipeError(
                f"--profile looks into {2 * STEPS} steps, and the budget ends after {recipe.budget.amount:g}; "
                f"give it at least {2 * STEPS + 1}"
            )
        signal.signal(signal.SIGTERM, _interrupt)
        signal.signal(signal.SIGHUP, _interrupt)
        # Tied to this process: a foreground command that is killed must leave nothing running behind.
        run = start(recipe, _launcher("inline", options), options.runs, **_queued(options))
    waiting = WaitForSpace(run)
    interrupted = _follow_to_the_end(run, options.profile, None if somebody_there(options.json) else waiting)
    from workbench.launchers.local import wait_for_supervisors  # slower to import than all that the other verbs need

    # The supervisor lives no longer than we do, and it still has the report to write.
    wait_for_supervisors(REPORT_LIMIT_SECONDS)
    try:
        result = run.outcome()
        if waiting.message and result["state"] == "stopped":
            raise RunFailed(waiting.told)
    except RunFailed as error:
        if options.json:
            # The one JSON object on stdout names the run; the handler above knows only the error.
            state = run.state
            print(json.dumps({"run": run.id, "state": run.status, "steps": state.step, "error": str(error)}))
            print(f"error: {error}", file=sys.stderr)
            return 1
        raise
    _conclude(run, result.against(options.target_loss), options)
    return int(interrupted and result["state"] == "stopped")


class _Terminated(KeyboardInterrupt):
    """As a Ctrl-C, but nobody sits there; the text names the signal."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    # `timeout` and service managers send one to the process and one to its group: the second must not undo the stop.
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    if number == signal.SIGHUP:
        # The terminal is gone, and writing to it would be an error of its own.
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (open until the process ends)
    raise _Terminated(signal.Signals(number).name)


def _follow_to_the_end(run: Run, profile: bool, waiting: WaitForSpace | None) -> bool:
    """Show how far a run is until it has ended; whether it was interrupted meanwhile, which stops it.

    Args:
        waiting: ends a run that stands still on a full disk, which is no interrupt; None: such a run waits on.
    """
    try:
        # In here: who reads the line may be quick to do what it says.
        if run.status == "queued":
            _say("Ctrl-C takes it out of the queue; with --now it trains at once, beside the others")
        if profile:
            run.ask("profile")
        follow(run, enough=waiting.over if waiting else None)
        if waiting and waiting.message:
            try:
                run.ask("stop", take_over=True, by="a full disk")
            except RunError:
                # It has ended in this moment, or cannot be asked: then it ends with this process.
                if not run.state.final:
                    raise RunFailed(waiting.told) from None
            follow(run)
    except KeyboardInterrupt as interrupt:
        terminated = isinstance(interrupt, _Terminated)
        why, way_on = (f"{interrupt}: ", "") if terminated else ("", "; Ctrl-C again ends it at once")
        doing = "leaving the queue" if run.status == "queued" else "stopping after this step, with a checkpoint"
        print(f"\n{why}{doing}{way_on}", file=sys.stderr)
        try:
            # Whoever else steers it: this process is about to end, and the run with it.
            run.ask("stop", take_over=True, by=str(interrupt))
        except RunError:
            return True  # it ended in the meantime
        follow(run)
        return True
    return False


def _conclude(run: Run, result: Result, options: argparse.Namespace) -> None:
    if options.profile and not run.folder.profile.exists():
        # A budget in seconds or tokens may hold fewer steps than anybody knew.
        print("no profile: the run was over before enough of its steps could be looked into", file=sys.stderr)
    if options.json:
        print(json.dumps({**result.brief, "folder": result["path"]}))
    else:
        print(summary(run, result))
    result.require()


def _scored_on(run: Run, result: Result) -> str:
    """Return in brackets how much held-out text the score of an ended run is of; empty without one."""
    evaluations = read_evaluations(run.folder)
    points, score = evaluations.get("heldout"), evaluations.get("score")
    tokens = points[-1].get("evaluated_tokens") if isinstance(points, list) and points else None
    if result["heldout_loss"] is None or not isinstance(tokens, int):
        return ""
    whole = result["state"] == "finished" or (isinstance(score, dict) and tokens == score.get("tokens"))
    return f" (all {tokens:,} tokens)" if whole else f" (a part, {tokens:,} tokens)"


def summary(run: Run, result: Result) -> str:
    """Return the results of a run as lines of text."""

    def number(key: str, form: str, unit: str = "") -> str:
        value = result.get(key)
        return format(value, form) + unit if isinstance(value, (int, float)) else "not measured"

    if result["state"] == "stopped" and not result["steps"] and not run.state.started:
        return f"{plain(run.name)} cancelled before it began\nrun    {run.folder.path}"
    steps = "no step measured" if result["steps"] is None else many(result["steps"], "step")
    lines = [
        f"{plain(run.name)} {result['state']}: {steps}, {number('tokens', ',')} tokens, "
        f"{number('seconds', '.1f')} s, {number('tokens_per_second', ',.0f')} tokens/s",
        f"held-out loss {number('heldout_loss', '.4f', ' nats')}{_scored_on(run, result)}; word frequencies "
        f"{number('unigram_entropy', '.4f')}, neighbours {number('bigram_entropy', '.4f')}"
        + (f"; {result['learned_in_words']}" if result.get("learned") else ""),
        f"run    {run.folder.path}",
    ]
    if run.folder.forecast.exists():
        # Here: few runs have one, and reading the telemetry of a long one takes its time.
        from workbench.plots.forecast_compared import beside_line, compared, missed_lines
        from workbench.plots.forecast_facts import whole_forecast

        view = run.view()
        promised = whole_forecast(view.forecast)
        rows = compared(promised, view) if promised else []
        if rows and (beside := beside_line(rows, view)):
            lines += [beside, *missed_lines(rows)]
    if profile := read_object(run.folder.profile):
        lines.append(profile_table(profile))
    if run.folder.report.exists():
        lines.append(f"report {run.folder.report}")
    return "\n".join(lines)
