"""The text that a run trains on may be gone: its paths are looked for, never read."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.store.folder import RunFolder, read_object
from workbench.store.state import FINAL, RunState

LOOKED_AT = 4
"""Paths of one recipe that are looked for: a table asks for all of its runs, every two seconds."""


class NamedText:
    """The files and folders that the recipe of a run names as its text; it is read when they are first looked for."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._named: list[tuple[str, str]] | None = None

    def missing(self, state: RunState, status: str) -> str:
        """Return the first of them that is gone; empty where all are there, or nobody could resume the run here.

        Args:
            status: what is true of it now (:func:`workbench.store.state.actual_status`).
        """
        if status not in FINAL or status == "finished" or state.elsewhere:
            return ""
        if self._named is None:
            self._named = _named(self._folder)
        return next((path for path, place in self._named if not os.path.exists(place)), "")


def _named(folder: RunFolder) -> list[tuple[str, str]]:
    """Return files and folders as the recipe names them, and where they are."""
    data = read_object(folder.recipe).get("data")
    # A tuning trains on a part of another corpus.
    while isinstance(data, Mapping) and isinstance(data.get("text"), Mapping):
        data = data["text"]
    if not isinstance(data, Mapping) or data.get("kind") != "files":
        return []
    paths = [path for name in ("paths", "heldout_paths") for path in _texts(data.get(name))][:LOOKED_AT]
    first = read_object(folder.launched).get("folder")
    # Else nobody knows any more where a relative one starts.
    base = first if isinstance(first, str) and os.path.isdir(first) else None
    stems = ((path, _stem(Path(path).expanduser())) for path in paths)
    return [(path, str(Path(base or "/", stem))) for path, stem in stems if base or stem.is_absolute()]


def _texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _stem(path: Path) -> Path:
    """Return a pattern's part before its first wildcard; any other path as it is."""
    magic = next((place for place, part in enumerate(path.parts) if glob.has_magic(part)), len(path.parts))
    return Path(*path.parts[:magic])
