"""A calibration in a process of its own: ``python -m workbench.autotune SECONDS < RECIPE``."""

from __future__ import annotations

import json
import sys

from workbench.autotune.decisions import plan_of
from workbench.autotune.trials import Trials
from workbench.base.loading import process_began
from workbench.recipes.recipe import Recipe
from workbench.store.state import die_with_parent


def main() -> None:
    """Print the plan as one line of JSON."""
    die_with_parent()
    # What the process has done so far was to load torch.
    began = process_began()
    trials = Trials(Recipe(**json.load(sys.stdin)), began + float(sys.argv[1]))
    try:
        print(json.dumps(plan_of(trials).to_dict()))
    finally:
        trials.close()


if __name__ == "__main__":
    main()
