"""Questions of the Data tab about the rows of a run or recipe; its text stays open between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.choices.data.data import Say
from workbench.recipes.recipe import Recipe
from workbench.seen.course import Course
from workbench.seen.facts import facts
from workbench.seen.finding import find_text
from workbench.seen.rows import Reader
from workbench.store.folder import RunFolder

MOST_READERS = 4
"""Runs and recipes whose text stays open; the one that was asked longest ago goes first."""


class Readers:
    """Readers of runs and recipes, each made once."""

    def __init__(self) -> None:
        self._open: dict[Path | str, Reader] = {}

    def of(self, subject: RunFolder | Recipe, say: Say | None = None) -> Reader:
        """Return the reader of a run as it stands now, or of a recipe.

        Args:
            say: called with a line while text is prepared; None refuses text that is not prepared here: it takes long.

        Raises:
            DataError: its text is not prepared here, or is another one by now.
        """
        key = subject.hash if isinstance(subject, Recipe) else subject.path
        reader = self._open.pop(key, None)
        if reader is None:
            recipe, folder = (subject, None) if isinstance(subject, Recipe) else (Recipe.load(subject.recipe), subject)
            reader = Reader(recipe, folder, say)
        else:
            reader.course = Course(reader.recipe, reader.folder)
        self._open[key] = reader
        while len(self._open) > MOST_READERS:
            self._open.pop(next(iter(self._open)))
        return reader


_READERS = Readers()


def rows_of(subject: RunFolder | Recipe, step: int = 0, first: int = 0, rows: int = 4) -> dict[str, Any]:
    """Return ``Rows`` as JSON; see :meth:`workbench.seen.rows.Reader.rows`."""
    return _READERS.of(subject).rows(step, first, rows).to_dict()


def found_in(subject: RunFolder | Recipe, text: str) -> dict[str, Any]:
    """Return ``Found`` as JSON; see :func:`workbench.seen.finding.find_text`."""
    return find_text(_READERS.of(subject), text, rows=0).to_dict()


def facts_of(subject: RunFolder | Recipe) -> dict[str, Any]:
    """Return facts about the text; see :func:`workbench.seen.facts.facts`."""
    return facts(_READERS.of(subject))


def prepared(subject: Recipe, say: Say) -> dict[str, Any]:
    """Prepare the text of a recipe and return facts about it; ``say`` is called with a line now and then."""
    return facts(_READERS.of(subject, say))
