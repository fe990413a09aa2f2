"""``workbench workshop``, ``task``, ``enter`` and ``board``: a machine for a room of learners, and what they do.

Imported with the command line, so each verb imports what it needs itself.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.base.errors import WorkbenchError

if TYPE_CHECKING:
    from workbench.launchers.queue.settings import QueueSettings

RUNNING, WAITING, SECONDS, LEARNERS = 1, 15, 600, 20  # lesson 70 queues twelve, lesson 64 trains for eight minutes


def add(verbs: Any, verb: Callable[..., Any]) -> None:
    """Add the verb with its options.

    Args:
        verbs: of the command line. verb: makes the parser of one.
    """
    text = "check this machine, prepare what lessons need, and set limits for each learner"
    shop = verb(verbs, "workshop", "workshop:workshop", text)
    shop.take("--check", "only check the machine: prepare nothing, set nothing")
    shop.take("--learners N", f"people who share it (default {LEARNERS})", type=int, default=LEARNERS)
    shop.take("--running N", f"runs of a learner at once (default {RUNNING})", type=int, default=RUNNING)
    shop.take("--waiting N", f"runs of a learner that wait (default {WAITING})", type=int, default=WAITING)
    shop.take("--seconds N", f"longest training of one run (default {SECONDS})", type=int, default=SECONDS)
    shop.take("--presets LIST", "what to prepare, with commas between (default: those of the lessons; '' for none)")
    task = verb(verbs, "task", "workshop:task", "set a task for everybody, or list those that are set")
    task.add_argument("action", nargs="?", default="list", choices=("list", "new"), help="what to do (default: list)")
    task.add_argument("name", nargs="?", metavar="NAME", help="of the task: small letters, digits, - and _")
    task.take(
        "--budget TEXT", "'60 seconds' (of training, times threads), '600 steps', '1M tokens'", default="60 seconds"
    )
    task.take("--text FILE", "UTF-8 text that every entry is scored on, and that none may train on")
    task.take("--title TEXT", "for people", default="")
    task.take("--rules TEXT", "further rules, in words", default="")
    task.take("--objective causal|masked", "of all entries (default causal)", default="causal")
    enter = verb(verbs, "enter", "workshop:enter", "score a run on the text of a task, and put it on the leaderboard")
    enter.take("run RUN", "a run id, a unique prefix of one, a name, or a run folder")
    enter.take("task TASK", "name of the task")
    board = verb(verbs, "board", "workshop:show_board", "print everybody's runs, answers in lessons, and leaderboards")
    board.take("--all", "a row for each run, not for one of each owner")


def workshop(options: argparse.Namespace) -> int:
    """Check, prepare and set limits; returns 2 where this machine cannot hold a workshop.

    Raises:
        WorkbenchError: no such preset, or a limit that makes no sense.
        RunFailed: a preset does not train here.
    """
    from workbench.launchers.queue.changes import set_limits
    from workbench.store.folder import runs_root
    from workbench.workshop.machine import check_machine, verdict
    from workbench.workshop.ready import PRESETS, warm_up

    if options.learners < 1:
        raise WorkbenchError(f"--learners {options.learners}: a workshop has at least one")

    def say(line: str) -> None:
        print(line, file=sys.stderr if options.json else sys.stdout, flush=True)

    checks = check_machine(runs_root(options.runs), options.learners)
    for check in checks:
        say(str(check))
    fit = all(check.grade != "bad" for check in checks)
    told: dict[str, Any] = {"checks": [asdict(check) for check in checks], "prepared": [], "limits": {}, "fit": fit}
    if fit and not options.check:
        limits = set_limits({
            "running_per_owner": options.running, "waiting_per_owner": options.waiting,
            "seconds_per_run": options.seconds,
        })  # fmt: skip
        say(_limits_in_words(limits))
        names = PRESETS if options.presets is None else tuple(filter(None, options.presets.split(",")))
        told["limits"] = {name: getattr(limits, name) for name in _LIMITS}
        told["prepared"] = [asdict(each) for each in warm_up(names, say)]
    say(verdict(checks))
    if options.json:
        print(json.dumps(told))
    return 0 if fit else 2


_LIMITS = ("running_per_owner", "waiting_per_owner", "seconds_per_run")


def _limits_in_words(limits: QueueSettings) -> str:
    return (
        f"limits of each learner: {limits.running_per_owner} running, {limits.waiting_per_owner} waiting, "
        f"{limits.seconds_per_run} seconds of training a run; `workbench queue set NAME=NUMBER` changes one "
        f"({', '.join(_LIMITS)}), an empty number lifts it"
    )


def task(options: argparse.Namespace) -> int:
    """Set a task, or list those that are set.

    Raises:
        RunError: a task of that name is there, or budget or text make no sense.
    """
    from workbench.store.folder import runs_root
    from workbench.workshop.task import new_task, tasks

    root = runs_root(options.runs)
    if options.action == "new":
        if not options.name or not options.text:
            raise WorkbenchError("write `workbench task new NAME --text FILE`, and --budget where it is not 60 seconds")
        more = {"title": options.title, "objective": options.objective, "rules": options.rules}
        found = [new_task(root, options.name, options.budget, Path(options.text).expanduser(), **more)]
    else:
        found = tasks(root)
    lines = [f"{each.name}: {each.title}, {each.budget}, {each.objective}" for each in found]
    text = "\n".join(lines) or f"no task is set in {root}; `workbench task new NAME --text FILE` sets one"
    print(json.dumps({"tasks": [asdict(each) for each in found]}) if options.json else text)
    return 0


def enter(options: argparse.Namespace) -> int:
    """Score a run on the text of a task and put it on the leaderboard.

    Raises:
        RunError: a rule of the task is broken.
    """
    from workbench.client.run import Run
    from workbench.store.find import typed

    # By name: it needs torch, which no other verb here should wait for.
    entering = importlib.import_module("workbench.workshop.entering")
    run_id, root = typed(options.run, options.runs)
    entry = entering.enter(Run(run_id, root), options.task, root, say=lambda line: print(line, file=sys.stderr))
    said = f"{entry.run}: {entry.bits_per_byte:.4f} bits per byte, {entry.loss:.4f} nats over {entry.scored:,} tokens"
    print(json.dumps(asdict(entry)) if options.json else said)
    return 0


def show_board(options: argparse.Namespace) -> int:
    """Print the board."""
    from workbench.client.listing import Listing
    from workbench.store.folder import runs_root
    from workbench.workshop.board import board
    from workbench.workshop.tables import board_text

    root = runs_root(options.runs)
    found = board(root, Listing(root).look().rows)
    print(json.dumps(found) if options.json else board_text(found, every_run=options.all))
    return 0
