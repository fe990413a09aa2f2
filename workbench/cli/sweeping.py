"""``workbench sweep``: one recipe at many settings."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from workbench.base.errors import RecipeError
from workbench.cli.command import DONE
from workbench.cli.following import begun, changed, existing, latest, over, say, seeds
from workbench.experiments.sweep.sweep import Sweep


def sweep(options: argparse.Namespace) -> int:
    """Start a sweep and follow it to its end; or follow, show or cancel an existing one; without any, list them.

    Raises:
        RecipeError, DataError: settings that cannot be swept; nothing was launched.
    """
    if (code := existing(Sweep, options.recipe or "", options, new=bool(options.over))) is not None:
        return code
    if not options.over:
        raise RecipeError(
            f"sweep '{options.recipe}' over what? For example --over optimizer.lr=1e-3,2e-3; sweeps here: "
            f"{latest(Sweep, options)}"
        )
    from workbench.experiments.sweep.sweep import sweep as start

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
    return begun(started, options)
