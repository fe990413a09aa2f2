"""Questions of the Data tab about a run's rows; its text stays open between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.recipes.recipe import Recipe
from workbench.seen.course import Course
from workbench.seen.facts import facts
from workbench.seen.finding import find_text
from workbench.seen.rows import Reader
from workbench.store.folder import RunFolder

MOST_READERS = 4
"""Runs whose text stays open; the one that was asked longest ago goes first."""


class Readers:
    """Readers of runs, each made once. Text that is not prepared here is not prepared for a page: that takes long."""

    def __init__(self) -> None:
        self._open: dict[Path, Reader] = {}

    def of(self, folder: RunFolder) -> Reader:
        """Return the reader of a run as it stands now.

        Raises:
            DataError: its text is not prepared here, or is another one by now.
        """
        reader = self._open.pop(folder.path, None)
        if reader is None:
            reader = Reader(Recipe.load(folder.recipe), folder, None)
        else:
            reader.course = Course(reader.recipe, folder)
        self._open[folder.path] = reader
        while len(self._open) > MOST_READERS:
            self._open.pop(next(iter(self._open)))
        return reader


_READERS = Readers()


def rows_of(folder: RunFolder, step: int = 0, first: int = 0, rows: int = 4) -> dict[str, Any]:
    """Return ``Rows`` as JSON; see :meth:`workbench.seen.rows.Reader.rows`."""
    return _READERS.of(folder).rows(step, first, rows).to_dict()


def found_in(folder: RunFolder, text: str) -> dict[str, Any]:
    """Return ``Found`` as JSON; see :func:`workbench.seen.finding.find_text`."""
    return find_text(_READERS.of(folder), text, rows=0).to_dict()


def facts_of(folder: RunFolder) -> dict[str, Any]:
    """Return facts about the text; see :func:`workbench.seen.facts.facts`."""
    return facts(_READERS.of(folder))
