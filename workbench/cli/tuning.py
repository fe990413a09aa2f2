"""``workbench tune``: a better recipe under a total budget."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from workbench.base.errors import RecipeError, check_known
from workbench.cli.command import DONE
from workbench.cli.following import begun, changed, existing, latest, over, say, seeds
from workbench.experiments.result import check_fail_on
from workbench.experiments.tune.axes import AXES
from workbench.experiments.tune.tune import Tuning


def tune(options: argparse.Namespace) -> int:
    """Start a tuning and follow it to its end; or follow, show or cancel an existing one; without any, list them.

    Raises:
        RecipeError, DataError: what cannot be tuned; nothing was launched.
        TargetMissed: its race fails it by ``--fail-on``.
    """
    check_fail_on(options.fail_on)
    if (code := existing(Tuning, options.recipe or "", options, new=bool(options.budget))) is not None:
        return code
    if not options.budget:
        raise RecipeError(f"tune '{options.recipe}' for how long? For example --budget '2 hours', for all of its runs "
                          f"together; tunings here: {latest(Tuning, options)}")  # fmt: skip
    if options.axis and options.over:
        raise RecipeError("--axis names what is tuned by default, and --over gives values of your own: take one")
    for axis in options.axis or ():
        check_known("--axis", axis, AXES, RecipeError, "values of your own work, too: --over optimizer.lr=1e-4..1e-2")
    from workbench.experiments.tune.tune import tune as start

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
    return begun(started, options)
