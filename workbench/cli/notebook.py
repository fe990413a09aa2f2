"""``workbench notebook``: what there is of a run, a race, a sweep or a tuning, as a notebook that repeats it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from workbench.cli.command import DONE
from workbench.opening import experiment, matching
from workbench.repeating import cells_of, write_notebook
from workbench.runs.run import Run


def notebook(options: argparse.Namespace) -> int:
    """Write the notebook.

    Raises:
        RunError: nothing of that name, or the file is there already. RecipeError: a run that is no recipe's alone.
    """
    # Runs last: the beginning of a race's id may begin those of its runs, too.
    known = bool(matching(options.run, options.runs))
    held = experiment(options.run, options.runs) if known else Run(options.run, options.runs)
    noun = "run" if isinstance(held, Run) else held.kind.noun
    path = write_notebook(Path(options.out or f"{held.id}.ipynb"), cells_of(held))
    print(json.dumps({noun: held.id, "notebook": str(path)}) if options.json else path)
    return DONE
