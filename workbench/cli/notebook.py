"""``workbench notebook``: what there is of a run, a race or a sweep, as a notebook that repeats it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from workbench.cli.command import DONE
from workbench.cli.following import found
from workbench.racing.race import Race
from workbench.racing.race_folder import RaceFolder
from workbench.repeating import race_cells, run_cells, sweep_cells, write_notebook
from workbench.runs.run import Run
from workbench.sweeping.sweep import Sweep
from workbench.sweeping.sweep_folder import SweepFolder


def notebook(options: argparse.Namespace) -> int:
    """Write the notebook.

    Raises:
        RunError: nothing of that name, or the file is there already. RecipeError: a run that is no recipe's alone.
    """
    # Runs last: the beginning of a race's id may begin those of its runs, too.
    held: Race | Sweep | Run
    if (race := found(options.run, RaceFolder, options)) is not None:
        held = Race(race.path)
        noun, cells = "race", race_cells(held)
    elif (sweep := found(options.run, SweepFolder, options)) is not None:
        held = Sweep(sweep.path)
        noun, cells = "sweep", sweep_cells(held)
    else:
        held = Run(options.run, options.runs)
        noun, cells = "run", run_cells(held)
    path = write_notebook(Path(options.out or f"{held.id}.ipynb"), cells)
    print(json.dumps({noun: held.id, "notebook": str(path)}) if options.json else path)
    return DONE
