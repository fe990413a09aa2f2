"""``workbench race``: recipes against a baseline over paired seeds."""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.assignments import assignment
from workbench.cli.command import DONE, FAILED
from workbench.cli.training import text_edits
from workbench.errors import RecipeError, RunFailed, WorkbenchError
from workbench.printable import plain
from workbench.racing.race import Race
from workbench.racing.race_folder import RaceFolder
from workbench.racing.results import check_fail_on

if TYPE_CHECKING:
    from workbench.recipe import Recipe

LINE_SECONDS, POLL_SECONDS = 10.0, 0.5


def race(options: argparse.Namespace) -> int:
    """Start a race and follow it to its end; or follow, show or cancel one that there is; without arms, list them.

    Raises:
        RecipeError, DataError: arms that cannot race; nothing was launched.
        TargetMissed: an arm fails it by ``--fail-on``.
    """
    check_fail_on(options.fail_on)
    if not options.arms:
        if options.cancel:
            raise WorkbenchError(f"cancel which race? Here: {_latest(options)}")
        return _list(options)
    if len(options.arms) == 1 and (held := _held(options)) is not None:
        if options.cancel:
            return _cancel(held, options)
        return _follow(held, options)
    if options.cancel:
        raise WorkbenchError(f"no race '{options.arms[0]}' to cancel; races here: {_latest(options)}")
    from workbench.racing.entering import arms_of
    from workbench.racing.race import race as start

    started = start(
        {name: _changed(source, options) for name, source in arms_of(options.arms).items()},
        options.budget,
        _seeds(options.seeds),
        baseline=options.baseline,
        score=options.score,
        reference=_ratios(options.reference),
        clock=options.clock,
        name=options.name,
        runs_dir=options.runs,
        dry_run=options.dry_run,
        say=lambda line: print(line, file=sys.stderr, flush=True),
    )
    if not isinstance(started, Race):
        if options.json:
            shares = {arm: asdict(share) for arm, share in started.shares.items()}
            print(json.dumps({"arms": shares, "cost": asdict(started.cost), "warnings": started.warnings}))
        return DONE
    print(f"race {started.id}; `workbench race {started.id}` follows it, `--cancel` ends it", file=sys.stderr)
    return _follow(started, options)


def _list(options: argparse.Namespace) -> int:
    races = [Race(race_id, options.runs) for race_id in reversed(RaceFolder.ids(options.runs))]
    rows = [{"race": held.id, "name": held.plan.name, "status": held.status, "message": held.message} for held in races]
    if options.json:
        print(json.dumps({"races": rows}))
        return DONE
    for row in rows:
        print(plain("  ".join(row.values()), 200))
    if not rows:
        print(f"no races in {RaceFolder.root(options.runs)}")
    return DONE


def _follow(held: Race, options: argparse.Namespace) -> int:
    if options.detach:
        print(json.dumps({"race": held.id, "status": held.status}) if options.json else held.id)
        return DONE
    try:
        _wait(held)
    except KeyboardInterrupt:
        print(f"\nthe race goes on; `workbench race {held.id} --cancel` ends it", file=sys.stderr)
        raise
    found = held.result
    if options.results:
        found.write(options.results, options.fail_on)
    print(json.dumps(found) if options.json else found)
    try:
        found.require(options.fail_on)
    except RunFailed as error:
        # The JSON object on stdout says it all; a second one would break its readers.
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    return DONE


def _wait(held: Race) -> None:
    """Until it has ended, with a line on stderr whenever it has got further."""
    last, printed = "", 0.0
    while not held.ended():
        if (message := held.message) != last and time.monotonic() - printed >= LINE_SECONDS:
            print(message, file=sys.stderr, flush=True)
            last, printed = message, time.monotonic()
        time.sleep(POLL_SECONDS)


def _held(options: argparse.Namespace) -> Race | None:
    """The race that the one argument names; None where it names none."""
    text = options.arms[0]
    if (Path(text) / "race.json").is_file():
        return Race(Path(text))
    matching = [each for each in RaceFolder.ids(options.runs) if each.startswith(text)]
    return Race(text, options.runs) if matching else None


def _cancel(held: Race, options: argparse.Namespace) -> int:
    stopped = held.cancel()
    print(json.dumps({"race": held.id, "status": "cancelled", "stopped": stopped}) if options.json else
          f"race {held.id} cancelled; stopping {len(stopped)} runs")  # fmt: skip
    return DONE


def _latest(options: argparse.Namespace) -> str:
    return ", ".join(RaceFolder.ids(options.runs)[-3:]) or "none"


def _changed(source: str, options: argparse.Namespace) -> Recipe:
    """The recipe of an arm, with what ``--text`` and ``--set`` change in all of them."""
    from workbench.experiments.comparable import recipe_of

    changes = [*text_edits(options.text), *map(assignment, options.set)]
    recipe = recipe_of(source)
    return recipe.edited(changes) if changes else recipe


def _seeds(text: str) -> int | list[int]:
    try:
        return int(text) if "," not in text else [int(part) for part in text.split(",")]
    except ValueError:
        raise RecipeError(f"--seeds '{text}' is neither a number of seeds nor a list such as 10,11,12") from None


def _ratios(text: str) -> list[float]:
    try:
        return [] if text == "none" else [float(part) for part in text.split(",")]
    except ValueError:
        raise RecipeError(f"--reference '{text}' is neither 'none' nor ratios such as 0.5,2") from None
