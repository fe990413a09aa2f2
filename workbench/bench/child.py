"""How a child process of a benchmark begins: tied to its parent, with the recipe's threads."""

from __future__ import annotations

import json
import sys
from typing import Any

import torch

from workbench.recipe import Recipe
from workbench.runs.state import die_with_parent


def begin() -> tuple[dict[str, Any], Recipe]:
    """The setting, JSON in the only argument, and its recipe, whose CPU threads are set."""
    # A killed parent must not leave its child training.
    die_with_parent()
    setting = json.loads(sys.argv[1])
    recipe = Recipe(**setting["recipe"])
    if recipe.execution.threads:
        torch.set_num_threads(recipe.execution.threads)
    return setting, recipe
