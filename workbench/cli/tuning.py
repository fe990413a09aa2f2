"""``workbench tune``: a better recipe under a total budget."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from workbench.cli.command import DONE
from workbench.cli.following import cancelled, changed, followed, found, latest, listed, over, say, seeds
from workbench.errors import RecipeError, WorkbenchError
from workbench.tuning.tune import Tuning
from workbench.tuning.tuning_folder import TuningFolder


def tune(options: argparse.Namespace) -> int:
    """Start a tuning and follow it to its end; or go on with, show or cancel one that there is; without any, list them.

    Raises:
        RecipeError, DataError: what cannot be tuned; nothing was launched.
    """
    if not options.recipe:
        if options.cancel or options.show:
            raise WorkbenchError(f"which tuning? Here: {latest(TuningFolder, options)}")
        ids = reversed(TuningFolder.ids(options.runs))
        return listed((Tuning(each, options.runs) for each in ids), TuningFolder, options)
    # A preset may be called as a tuning is: who gives a budget means the former.
    if not options.budget and (folder := found(options.recipe, TuningFolder, options)) is not None:
        held = Tuning(folder.path)
        return cancelled(held, options) if options.cancel else _show(held, options)
    if options.cancel or options.show:
        raise WorkbenchError(f"no tuning '{options.recipe}'; tunings here: {latest(TuningFolder, options)}")
    if not options.budget:
        raise RecipeError(f"tune '{options.recipe}' for how long? For example --budget '2 hours', for all of its runs "
                          f"together; tunings here: {latest(TuningFolder, options)}")  # fmt: skip
    if options.axis and options.over:
        raise RecipeError("--axis names what is tuned by default, and --over gives values of your own: take one")
    from workbench.tuning.tune import tune as start

    started = start(
        changed(options.recipe, options), options.budget, dict(map(over, options.over)) or options.axis or None,
        each=options.each, seeds=seeds(options.seeds), race_seeds=options.race_seeds and seeds(options.race_seeds),
        share=options.share, score=options.score, name=options.name, runs_dir=options.runs, dry_run=options.dry_run,
        say=say,
    )  # fmt: skip
    if not isinstance(started, Tuning):
        if options.json:
            print(json.dumps({"division": asdict(started.division), "each": started.each, "seeds": started.seeds,
                              "race_seeds": started.race_seeds, "warnings": started.warnings}))  # fmt: skip
        return DONE
    say(f"tuning {started.id}; `{started.folder.command}` follows it, `--cancel` ends it")
    return _show(started, options)


def _show(held: Tuning, options: argparse.Namespace) -> int:
    def write(result: Any) -> None:
        if options.results:
            result.write(options.results)
        if options.report:
            held.report(options.report)
        if options.tuned:
            held.recipe.save(options.tuned)

    if options.show:
        result = held.result
        write(result)
        print(json.dumps(result) if options.json else f"{held.table}\n{result}")
        return DONE
    return followed(held, options, write, lambda result: result.require())
