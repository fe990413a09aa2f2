"""``workbench notebook``: what there is of a run, a race, a sweep or a tuning, as a notebook that repeats it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from workbench.cli.command import DONE
from workbench.experiments.open import held, noun_of
from workbench.experiments.reproduce import cells_of, write_notebook


def notebook(options: argparse.Namespace) -> int:
    """Write the notebook.

    Raises:
        RunError: nothing of that name, or the file is there already. RecipeError: a run that is no recipe's alone.
    """
    found = held(options.run, options.runs)
    path = write_notebook(Path(options.out or f"{found.id}.ipynb"), cells_of(found))
    print(json.dumps({noun_of(found): found.id, "notebook": str(path)}) if options.json else path)
    return DONE
