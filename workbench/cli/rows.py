"""``workbench rows``: what the model sees at a step, and where a text was read."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

from workbench.base.errors import RunError
from workbench.store.find import find, typed


def show(options: argparse.Namespace) -> int:
    """Print rows of a step, or the places of a text, as text or as one JSON object.

    Raises:
        WorkbenchError: no such run, preset, step or row; or the text cannot be had.
    """
    # By name: it needs torch, which no other verb should wait for.
    asked = importlib.import_module("workbench.seen.asked")
    found = asked.rows(
        _source(options.what, options.runs), options.step, options.rows, find=options.find, first=options.first,
        runs_dir=options.runs, say=lambda line: print(line, file=sys.stderr),
    )  # fmt: skip
    print(json.dumps(found.to_dict()) if options.json else found)
    return 0


def _source(what: str, runs: str | None) -> Any:
    """Return the recipe of a file or preset, or the text that names a run; a run goes before a preset of its name."""
    from workbench.recipes import presets
    from workbench.recipes.recipe import Recipe

    if Path(what).is_file():
        return Recipe.load(what)
    if what not in presets.names():
        return what
    try:
        find(*typed(what, runs))
    except RunError:
        return presets.get(what)
    return what
