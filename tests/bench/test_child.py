"""How a benchmark's child begins."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from workbench import presets

CHILD = """
import json, torch
from workbench.bench.child import begin

setting, recipe = begin()
print(json.dumps({"name": setting["name"], "seed": recipe.seed, "threads": torch.get_num_threads()}))
"""


@pytest.mark.process
def test_a_child_takes_its_recipe_and_its_threads() -> None:
    recipe = presets.fast().with_(seed=7, execution={"threads": 1})
    setting = json.dumps({"name": "me", "recipe": recipe.to_dict()})
    done = subprocess.run([sys.executable, "-c", CHILD, setting], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"name": "me", "seed": 7, "threads": 1}
