"""The sources of a recipe: a preset by its name, a run of the runs folder as ``run:<id>``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from workbench.base.text import plain
from workbench.choices.data.tuning_text import on_own_text
from workbench.recipes import presets
from workbench.recipes.recipe import Recipe
from workbench.store.find import find, run_ids
from workbench.store.folder import runs_root
from workbench.store.labels import read_labels

RUN = "run:"
LISTED = 1000
"""Runs offered, the newest: a longer drop-down is no help to anybody, and each name crosses the wire."""
# Of a race's, a sweep's and a tuning's, which follow from these.
_HELD_ID = re.compile(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)-(.+)-s(\d+)-[0-9a-f]{10}")
_ID = re.compile(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)-(.+)-[0-9a-f]{6}-[0-9a-f]{4}")


def default_recipe() -> Recipe:
    """Return the recipe that is composed where nothing else is given."""
    return presets.get(presets.DEFAULT)


def run_sources(runs_dir: str | Path | None = None, rows: Iterable[Mapping[str, Any]] = ()) -> list[tuple[str, str]]:
    """Return ``(source, words)`` of every run in the folder, newest first, at most :data:`LISTED`.

    The folder is listed and no file in it is opened: an id holds the time, the name and the recipe's hash.

    Args:
        rows: of the table of runs (:func:`workbench.client.summary.summary`), which know more.
    """
    known = {row["id"]: row for row in rows}
    newest = sorted(run_ids(runs_root(runs_dir)), reverse=True)[:LISTED]
    return [(RUN + run_id, _told(run_id, known.get(run_id))) for run_id in newest]


def _told(run_id: str, row: Mapping[str, Any] | None) -> str:
    """Return a run's label; of one that has not finished, how far it came."""
    if row is None:
        return run_label(run_id)
    _, *when = run_label(run_id).split(" · ")
    at = {"finished": [], "failed": ["failed"]}.get(row["status"], [f"{row['status']} at step {row['step']:,}"])
    return " · ".join([plain(row["name"]), *when, *at])


def run_label(run_id: str) -> str:
    """Return a run id as people read it: name first, so that typing its beginning finds it in a drop-down.

    Example:
        >>> run_label("20260131-081500-bert-tiny-0a1b2c-3d4e")
        'bert-tiny · 2026-01-31 08:15:00 UTC'
        >>> run_label("20260131-081500-mine-s3-0a1b2c3d4e")
        'mine seed 3 · 2026-01-31 08:15:00 UTC'
    """
    parts = _HELD_ID.fullmatch(run_id) or _ID.fullmatch(run_id)
    if parts is None:
        return run_id
    year, month, day, hour, minute, second, name, *seeds = parts.groups()
    name = " seed ".join([name, *seeds])
    return f"{name} · {year}-{month}-{day} {hour}:{minute}:{second} UTC"


def recipe_of(source: str, runs_dir: str | Path | None = None) -> Recipe:
    """Return the recipe of a preset or of a run; that of a run by the name that the run has now.

    Raises:
        RecipeError: no such preset; or the run's ``recipe.json`` is missing, damaged, of a newer version,
            or not whole.
        RunError: no such run.
    """
    if source.startswith(RUN):
        folder = find(source.removeprefix(RUN), runs_dir)
        recipe = Recipe.load(folder.recipe)
        recipe.check_whole()
        if (given := read_labels(folder).name) and given != recipe.name:
            recipe = recipe.with_(name=given)
        return on_own_text(recipe)
    return presets.get(source)


def preset_of(recipe: Recipe) -> str | None:
    """Return the preset that a recipe is, with nothing changed; None for any other."""
    name = recipe.name.replace("-", "_")
    return name if name in presets.names() and presets.get(name) == recipe else None


def title_of(source: str) -> str:
    """Return what a heading or a tooltip calls a source."""
    return (
        f"run {run_label(source.removeprefix(RUN)).split(' · ')[0]}" if source.startswith(RUN) else f"preset {source}"
    )


def about(source: str) -> str:
    """Return what there is to say about a source: a preset's first line, a run's time and id."""
    if source.startswith(RUN):
        return f"recipe of run {source.removeprefix(RUN)}"
    line = (inspect.getdoc(getattr(presets, source)) or "").splitlines()[0]
    return line.replace(":func:", "").replace("`", "")
