"""The common part of the verbs race, sweep and tune: list, find, follow and cancel experiments."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from workbench.base.assignments import assignment
from workbench.base.errors import RecipeError, RunFailed, WorkbenchError
from workbench.base.text import many, plain
from workbench.cli.command import DONE, FAILED
from workbench.cli.training import text_edits
from workbench.experiments.experiment import Experiment
from workbench.experiments.experiment_folder import ENDED
from workbench.experiments.race.race import Race
from workbench.experiments.sweep.space import read_values
from workbench.experiments.tune.tune import Tuning

LINE_SECONDS, POLL_SECONDS = 10.0, 0.5
Held = Experiment[Any, Any]


def existing(kind: type[Held], word: str, options: argparse.Namespace, *, new: bool = False) -> int | None:
    """List all of a kind; follow, show or cancel the one that a word names; None where one is to be begun.

    Args:
        word: empty to list them.
        new: what else is said begins one: a preset may be called as an experiment is.

    Raises:
        WorkbenchError: one that is not there is to be shown or cancelled.
    """
    noun = kind.kind.noun
    if not word:
        if options.cancel or options.show:
            raise WorkbenchError(f"which {noun}? Here: {latest(kind, options)}")
        return _listed(kind, options)
    if not new and kind.kind.matching(word, options.runs):
        held = kind(word, options.runs)
        return _cancelled(held, options) if options.cancel else followed(held, options)
    if options.cancel or options.show:
        raise WorkbenchError(f"no {noun} '{word}'; {kind.kind.plural} here: {latest(kind, options)}")
    return None


def latest(kind: type[Held], options: argparse.Namespace) -> str:
    """Return the newest ids, for a message."""
    known = kind.kind.ids(options.runs)
    older = f" and {len(known) - 3} older" if len(known) > 3 else ""
    return f"{', '.join(known[-3:])}{older}" or "none"


def followed(held: Held, options: argparse.Namespace) -> int:
    """Wait for the end and print the result; how it stands now with ``--show``, its id alone with ``--detach``.

    How it stands fails nothing, unless ``--fail-on`` says what does: that is asked of what has ended.
    """
    noun = held.kind.noun
    if options.detach:
        print(json.dumps({noun: held.id, "status": held.status}) if options.json else held.id)
        return DONE
    if not options.show:
        try:
            _wait(held)
        except KeyboardInterrupt:
            if held.status not in ENDED:
                print(f"\nthe {noun} goes on; `{held.folder.command} --cancel` ends it", file=sys.stderr)
            raise
    result = held.result
    judged = [options.fail_on] if "fail_on" in options else []
    gate = judged not in ([], ["never"])
    if options.results:
        # Of a race alone there is a JUnit file, which says what failed.
        result.write(options.results, *(judged if isinstance(held, Race) else ()))
    if options.report:
        held.report(options.report)
    if isinstance(held, Tuning) and options.tuned:
        held.recipe.save(options.tuned)
    if options.json:
        print(json.dumps(result))
    else:
        print("\n".join(filter(None, (held.table if options.show else "", str(result)))))
    try:
        if gate or not options.show:
            result.require(*judged)
            if gate and result.gate_note:
                say(f"note: {result.gate_note}")
        elif held.status == "failed":
            # How it stands is no judgement of a verdict, but there is none of what has failed.
            result.require(*(["never"] if judged else []))
    except RunFailed as error:
        # The JSON object on stdout says it all; a second one would break its readers.
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    return DONE


def begun(held: Held, options: argparse.Namespace) -> int:
    """Say how to find what was begun again, and follow it."""
    say(f"{held.kind.noun} {held.id}; `{held.folder.command}` follows it, `--cancel` ends it")
    return followed(held, options)


def _listed(kind: type[Held], options: argparse.Namespace) -> int:
    """Print all of a kind that were begun as such, newest first."""
    noun, plural, root = kind.kind.noun, kind.kind.plural, kind.kind.root(options.runs)
    all_of = (kind(kind.kind(root / each)) for each in reversed(kind.kind.ids(options.runs)))
    # A tuning stands for its sweep and its race: `workbench tune` lists it.
    rows = [
        {noun: each.id, "name": each.folder.name, "status": each.status, "message": each.message}
        for each in all_of
        if not each.folder.is_stage
    ]
    if options.json:
        print(json.dumps({plural: rows}))
        return DONE
    for row in rows:
        print("  ".join(plain(text, 100) for text in row.values() if text))
    if not rows:
        print(f"no {plural} in {root}")
    return DONE


def _cancelled(held: Held, options: argparse.Namespace) -> int:
    """End one, and say so."""
    stopped, noun = held.cancel(), held.kind.noun
    print(json.dumps({noun: held.id, "status": "cancelled", "stopped": stopped}) if options.json else
          f"{noun} {held.id} cancelled; stopping {many(len(stopped), 'run')}")  # fmt: skip
    return DONE


def _wait(held: Held) -> None:
    """Until it has ended, with a line on stderr whenever it has got further."""
    last, printed = "", 0.0
    # One that somebody has cancelled goes on until its runs have stopped.
    while not held.ended() or held.going:
        message = held.message
        # One that was cancelled has none.
        if message not in ("", last) and time.monotonic() - printed >= LINE_SECONDS:
            print(message, file=sys.stderr, flush=True)
            last, printed = message, time.monotonic()
        time.sleep(POLL_SECONDS)


def changed(source: str, options: argparse.Namespace) -> Any:
    """Return a recipe with the changes of ``--text`` and ``--set``."""
    from workbench.experiments.validation import recipe_of

    changes = [*text_edits(options.text), *map(assignment, options.set)]
    recipe = recipe_of(source)
    return recipe.edited(changes) if changes else recipe


def seeds(text: str) -> int | list[int]:
    """Return the seeds of ``--seeds``: a number, or a list.

    Raises:
        RecipeError: neither.
    """
    try:
        return int(text) if "," not in text else [int(part) for part in text.split(",")]
    except ValueError:
        raise RecipeError(f"--seeds '{text}' is neither a number of seeds nor a list such as 10,11,12") from None


def over(text: str) -> tuple[str, Any]:
    """Return path and values of ``--over PATH=VALUES``.

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
