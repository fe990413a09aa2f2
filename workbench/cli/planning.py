"""``workbench plan``: which knobs of the native engine suit a recipe on this machine, by trying them."""

from __future__ import annotations

import argparse
import json
import sys

from workbench.base.errors import RecipeError
from workbench.cli.training import recipe_from
from workbench.plots.plan_rows import COLUMNS, plan_rows


def plan(options: argparse.Namespace) -> int:
    """Measure, print the table, or one JSON object; a recipe of another execution is planned as ``auto``.

    Raises:
        RecipeError: the recipe is wrong, or this machine cannot carry it out.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from workbench.choices.data.prepare import prepare
    from workbench.choices.execution.autotune import Planned, PlannedEngine, calibrate

    recipe = recipe_from(options)
    if not isinstance(recipe.execution, Planned):
        recipe = recipe.with_(execution="auto")
    recipe.check_whole()
    recipe.check_here()

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    # Text is made into tokens once; that is no part of the calibration.
    prepare(recipe.data, say=say)
    found = calibrate(recipe, say)
    if options.json:
        print(json.dumps(found.to_dict()))
        return 0
    table = Table(*COLUMNS, box=None)
    for row in plan_rows(found.to_dict()):
        table.add_row(*map(Text, row))
    Console(soft_wrap=True).print(table)
    print(f"{PlannedEngine(recipe, found).planned}; calibrated in {found.seconds:.0f} s")
    if found.note:
        raise RecipeError(f"no plan: {found.note}")
    return 0
