"""What the verbs of experiments, race, sweep and tune, have in common: list, find, follow and cancel them."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from workbench.assignments import assignment
from workbench.cli.command import DONE, FAILED
from workbench.cli.training import text_edits
from workbench.errors import RecipeError, RunFailed
from workbench.experiments.experiment import Experiment
from workbench.experiments.experiment_folder import ExperimentFolder
from workbench.printable import plain
from workbench.sweeping.space import read_values

LINE_SECONDS, POLL_SECONDS = 10.0, 0.5
Held = Experiment[Any, Any]


def listed(all_of: Iterable[Held], kind: type[ExperimentFolder], options: argparse.Namespace) -> int:
    """Print all of a kind, newest first."""
    rows = [{kind.noun: each.id, "name": each.plan.name, "status": each.status, "message": each.message}
            for each in all_of]  # fmt: skip
    if options.json:
        print(json.dumps({kind.plural: rows}))
        return DONE
    for row in rows:
        print("  ".join(plain(text, 100) for text in row.values() if text))
    if not rows:
        print(f"no {kind.plural} in {kind.root(options.runs)}")
    return DONE


def found(text: str, kind: type[ExperimentFolder], options: argparse.Namespace) -> ExperimentFolder | None:
    """The experiment that a word names, by folder, id, beginning of an id, or name; None where it names none."""
    if (folder := kind(Path(text).absolute())).plan.is_file():
        return folder
    known = kind.ids(options.runs)
    named = any(each.startswith(text) or kind(kind.root(options.runs) / each).name == text for each in known)
    return kind.find(text, options.runs) if named else None


def latest(kind: type[ExperimentFolder], options: argparse.Namespace) -> str:
    """The newest ids, for a message."""
    return ", ".join(kind.ids(options.runs)[-3:]) or "none"


def cancelled(held: Held, options: argparse.Namespace) -> int:
    """End one, and say so."""
    stopped, noun = held.cancel(), held.folder.noun
    print(json.dumps({noun: held.id, "status": "cancelled", "stopped": stopped}) if options.json else
          f"{noun} {held.id} cancelled; stopping {len(stopped)} runs")  # fmt: skip
    return DONE


def followed(
    held: Held, options: argparse.Namespace, write: Callable[[Any], None], require: Callable[[Any], None]
) -> int:
    """Wait for the end and print the result, unless it is to go on alone.

    Args:
        write: keeps the result where ``--results`` and the like say. require: raises where it fails.
    """
    noun = held.folder.noun
    if options.detach:
        print(json.dumps({noun: held.id, "status": held.status}) if options.json else held.id)
        return DONE
    try:
        _wait(held)
    except KeyboardInterrupt:
        print(f"\nthe {noun} goes on; `{held.folder.command} --cancel` ends it", file=sys.stderr)
        raise
    result = held.result
    write(result)
    print(json.dumps(result) if options.json else result)
    try:
        require(result)
    except RunFailed as error:
        # The JSON object on stdout says it all; a second one would break its readers.
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    return DONE


def _wait(held: Held) -> None:
    """Until it has ended, with a line on stderr whenever it has got further."""
    last, printed = "", 0.0
    while not held.ended():
        if (message := held.message) != last and time.monotonic() - printed >= LINE_SECONDS:
            print(message, file=sys.stderr, flush=True)
            last, printed = message, time.monotonic()
        time.sleep(POLL_SECONDS)


def changed(source: str, options: argparse.Namespace) -> Any:
    """A recipe with what ``--text`` and ``--set`` change."""
    from workbench.experiments.comparable import recipe_of

    changes = [*text_edits(options.text), *map(assignment, options.set)]
    recipe = recipe_of(source)
    return recipe.edited(changes) if changes else recipe


def seeds(text: str) -> int | list[int]:
    """What ``--seeds`` says: how many, or which.

    Raises:
        RecipeError: neither.
    """
    try:
        return int(text) if "," not in text else [int(part) for part in text.split(",")]
    except ValueError:
        raise RecipeError(f"--seeds '{text}' is neither a number of seeds nor a list such as 10,11,12") from None


def over(text: str) -> tuple[str, Any]:
    """What ``--over PATH=VALUES`` says.

    Raises:
        RecipeError: no ``=``.
    """
    path, equals, values = text.partition("=")
    if not equals:
        raise RecipeError(f"{text[:80]!r} is not PATH=VALUES, for example optimizer.lr=1e-3,2e-3")
    return path.strip(), read_values(values, path.strip())


def say(line: str) -> None:
    """One line on stderr."""
    print(line, file=sys.stderr, flush=True)
