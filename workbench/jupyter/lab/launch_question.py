"""The question before a launch that may not be meant: once, and Launch pressed again is the answer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from workbench.base.errors import WorkbenchError
from workbench.client.run import Run
from workbench.recipes.recipe import Recipe
from workbench.store.find import find
from workbench.store.state import FINAL


class Question(NamedTuple):
    """A question before a launch.

    Attributes:
        button: what Launch is called until it is answered.
        said: in the line beside it. whole: in that line's tooltip.
        bad: something speaks against the recipe itself.
    """

    button: str
    said: str
    whole: str
    bad: bool


def question(doubt: str, same: str) -> Question | None:
    """Return what to ask; None where nothing is unusual.

    Args:
        doubt: what speaks against the recipe; empty where nothing does.
        same: name of a run of this very recipe that has not ended; empty where there is none.

    Example:
        >>> question("would take 200 days on this machine", "").said
        'press again to launch anyway: would take 200 days on this machine'
    """
    again = f"{same} is a run of this very recipe and has not ended. Press again for a second run of it."
    if doubt:
        more = f" {again}" if same else ""
        return Question("Launch anyway", f"press again to launch anyway: {doubt}", f"{doubt}.{more}", True)
    # The way out comes first: a long name is cut.
    said = f"press again to start a second run: {same} has this very recipe and has not ended"
    return Question("Launch again", said, again, False) if same else None


def same_running(recipe: Recipe, rows: Iterable[Mapping[str, Any]], runs_dir: str | Path | None) -> str:
    """Name of a run that trains this recipe now; empty where none does.

    Args:
        rows: of the table of runs.
    """
    for row in rows:
        # One that is gone by now, or of a version that cannot be read here, keeps nobody from launching.
        with contextlib.suppress(WorkbenchError):
            if row["status"] not in FINAL and _trains(run := Run(find(row["id"], runs_dir)), recipe):
                return run.name
    return ""


def _trains(run: Run, recipe: Recipe) -> bool:
    # Of a fork the recipe says only how it went on.
    return run.origin is None and run.recipe.hash == recipe.located().hash
