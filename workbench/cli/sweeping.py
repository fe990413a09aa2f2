"""``workbench sweep``: one recipe at many settings."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from workbench.cli.command import DONE
from workbench.cli.following import cancelled, changed, followed, found, latest, listed, over, say, seeds
from workbench.errors import RecipeError, WorkbenchError
from workbench.sweeping.sweep import Sweep
from workbench.sweeping.sweep_folder import SweepFolder


def sweep(options: argparse.Namespace) -> int:
    """Start a sweep and follow it to its end; or go on with, show or cancel one that there is; without any, list them.

    Raises:
        RecipeError, DataError: settings that cannot be swept; nothing was launched.
    """
    if not options.recipe:
        if options.cancel or options.show:
            raise WorkbenchError(f"which sweep? Here: {latest(SweepFolder, options)}")
        ids = reversed(SweepFolder.ids(options.runs))
        return listed((Sweep(each, options.runs) for each in ids), SweepFolder, options)
    # A preset may be called as a sweep is: who says what to vary means the former.
    if not options.over and (folder := found(options.recipe, SweepFolder, options)) is not None:
        held = Sweep(folder.path)
        return cancelled(held, options) if options.cancel else _show(held, options)
    if options.cancel or options.show:
        raise WorkbenchError(f"no sweep '{options.recipe}'; sweeps here: {latest(SweepFolder, options)}")
    if not options.over:
        raise RecipeError(
            f"sweep '{options.recipe}' over what? For example --over optimizer.lr=1e-3,2e-3; sweeps here: "
            f"{latest(SweepFolder, options)}"
        )
    from workbench.sweeping.sweep import sweep as start

    started = start(
        changed(options.recipe, options), dict(map(over, options.over)), sampler=options.sampler, runs=options.points,
        seeds=seeds(options.seeds), budget=options.budget, seed=options.seed, early_stopping=options.early_stopping,
        score=options.score, clock=options.clock, name=options.name, runs_dir=options.runs, dry_run=options.dry_run,
        say=say,
    )  # fmt: skip
    if not isinstance(started, Sweep):
        if options.json:
            print(json.dumps({"points": started.runs, "cost": asdict(started.cost), "warnings": started.warnings}))
        return DONE
    say(f"sweep {started.id}; `workbench sweep {started.id}` follows it, `--cancel` ends it")
    return _show(started, options)


def _show(held: Sweep, options: argparse.Namespace) -> int:
    def write(result: Any) -> None:
        if options.results:
            result.write(options.results)
        if options.report:
            held.report(options.report)

    if options.show:
        result = held.result
        write(result)
        print(json.dumps(result) if options.json else f"{held.table}\n{result}")
        return DONE
    return followed(held, options, write, lambda result: result.require())
