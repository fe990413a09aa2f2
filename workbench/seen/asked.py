"""``wb.rows``: the rows of a step as the model sees them, or where a run has read a text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import overload

from workbench.recipes.recipe import Recipe
from workbench.seen.finding import Found, find_text
from workbench.seen.rows import HasFolder, Rows, reader_of

Say = Callable[[str], None]


@overload
def rows(
    run_or_recipe: Recipe | HasFolder | str | Path, step: int = 0, rows: int = 4, *, find: None = None, first: int = 0,
    runs_dir: str | Path | None = None, say: Say = print,
) -> Rows: ...  # fmt: skip
@overload
def rows(
    run_or_recipe: Recipe | HasFolder | str | Path, step: int = 0, rows: int = 4, *, find: str, first: int = 0,
    runs_dir: str | Path | None = None, say: Say = print,
) -> Found: ...  # fmt: skip
def rows(
    run_or_recipe: Recipe | HasFolder | str | Path, step: int = 0, rows: int = 4, *, find: str | None = None,
    first: int = 0, runs_dir: str | Path | None = None, say: Say = print,
) -> Rows | Found:  # fmt: skip
    """Return the rows of a step as the model sees them: tokens, documents, what is hidden and what is asked for.

    Args:
        run_or_recipe: a recipe, a run, or a run's id, name or folder.
        step: counted from 0, by the steps taken before it; past or future.
        rows: to show, at most 256. first: the first of them in the batch.
        find: some words: return the documents that hold them, the steps that read them, and documents that were left
            out in preparation, with the reason.
        runs_dir: the runs folder; else ``$WORKBENCH_RUNS``, else ``./runs``.
        say: called with a line while text is prepared.

    Raises:
        RunError: no such run, step or row; or nobody can know the step's batch yet.
        DataError: the text cannot be had, or has changed since.

    Example:
        >>> wb.rows(run, step=100)  # doctest: +SKIP
        >>> wb.rows(run, find="the old lighthouse")  # doctest: +SKIP
    """
    reader = reader_of(run_or_recipe, runs_dir, say)
    return reader.rows(step, first, rows) if find is None else find_text(reader, find, rows)
