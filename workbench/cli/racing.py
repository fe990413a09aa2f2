"""``workbench race``: recipes against a baseline over paired seeds."""

from __future__ import annotations

import argparse
import json
import shlex
from dataclasses import asdict

from workbench.base.errors import RecipeError
from workbench.cli.command import DONE
from workbench.cli.following import begun, changed, existing, latest, say, seeds
from workbench.experiments.race.race import Race
from workbench.experiments.result import check_fail_on


def race(options: argparse.Namespace) -> int:
    """Start a race and follow it to its end; or follow, show or cancel an existing one; without arms, list them.

    Raises:
        RecipeError, DataError: arms that cannot race; nothing was launched.
        TargetMissed: an arm fails it by ``--fail-on``.
    """
    check_fail_on(options.fail_on)
    if (code := existing(Race, " ".join(options.arms), options, new=len(options.arms) > 1)) is not None:
        return code
    if len(options.arms) == 1:
        # Its own recipe with a change: arms of other recipes may have scores that do not compare.
        (first,) = options.arms
        mine = f"mine={first.partition(':')[0].rpartition('=')[2]}:optimizer.lr=1e-3"
        raise RecipeError(
            f"a race needs at least two arms, and no race is called '{first}': `workbench race {shlex.quote(first)} "
            f"{shlex.quote(mine)}` (each arm is NAME=RECIPE:CHANGES); races here: {latest(Race, options)}"
        )
    from workbench.experiments.race.race import race as start
    from workbench.experiments.race.race_plan import arms_of

    started = start(
        {name: changed(source, options) for name, source in arms_of(options.arms).items()},
        options.budget,
        seeds(options.seeds),
        baseline=options.baseline,
        score=options.score,
        reference=_ratios(options.reference),
        clock=options.clock,
        name=options.name,
        runs_dir=options.runs,
        dry_run=options.dry_run,
        say=say,
    )
    if not isinstance(started, Race):
        if options.json:
            shares = {arm: asdict(share) for arm, share in started.shares.items()}
            print(json.dumps({"arms": shares, "cost": asdict(started.cost), "warnings": started.warnings}))
        return DONE
    return begun(started, options)


def _ratios(text: str) -> list[float]:
    try:
        return [] if text == "none" else [float(part) for part in text.split(",")]
    except ValueError:
        raise RecipeError(f"--reference '{text}' is neither 'none' nor ratios such as 0.5,2") from None
