"""``workbench race``: recipes against a baseline over paired seeds."""

from __future__ import annotations

import argparse
import json
import shlex
from dataclasses import asdict

from workbench.cli.command import DONE
from workbench.cli.following import cancelled, changed, followed, found, latest, listed, say, seeds
from workbench.errors import RecipeError, WorkbenchError
from workbench.racing.race import Race
from workbench.racing.race_folder import RaceFolder
from workbench.racing.results import RaceResult, check_fail_on


def race(options: argparse.Namespace) -> int:
    """Start a race and follow it to its end; or follow, show or cancel one that there is; without arms, list them.

    Raises:
        RecipeError, DataError: arms that cannot race; nothing was launched.
        TargetMissed: an arm fails it by ``--fail-on``.
    """
    check_fail_on(options.fail_on)
    if not options.arms:
        if options.cancel:
            raise WorkbenchError(f"cancel which race? Here: {latest(RaceFolder, options)}")
        return listed(
            (Race(each, options.runs) for each in reversed(RaceFolder.ids(options.runs))), RaceFolder, options
        )
    if len(options.arms) == 1 and (folder := found(options.arms[0], RaceFolder, options)) is not None:
        held = Race(folder.path)
        return cancelled(held, options) if options.cancel else _follow(held, options)
    if options.cancel:
        raise WorkbenchError(f"no race '{options.arms[0]}' to cancel; races here: {latest(RaceFolder, options)}")
    if len(options.arms) == 1:
        raise RecipeError(
            f"a race needs at least two arms, and no race is called '{options.arms[0]}': `workbench race "
            f"{shlex.quote(options.arms[0])} mine=fast:optimizer.lr=1e-3` (each arm is NAME=RECIPE:CHANGES); races "
            f"here: {latest(RaceFolder, options)}"
        )
    from workbench.racing.entering import arms_of
    from workbench.racing.race import race as start

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
    say(f"race {started.id}; `workbench race {started.id}` follows it, `--cancel` ends it")
    return _follow(started, options)


def _follow(held: Race, options: argparse.Namespace) -> int:
    def write(result: RaceResult) -> None:
        if options.results:
            result.write(options.results, options.fail_on)
        if options.report:
            held.report(options.report)

    return followed(held, options, write, lambda result: result.require(options.fail_on))


def _ratios(text: str) -> list[float]:
    try:
        return [] if text == "none" else [float(part) for part in text.split(",")]
    except ValueError:
        raise RecipeError(f"--reference '{text}' is neither 'none' nor ratios such as 0.5,2") from None
