"""A recipe's steps and memory, measured in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from workbench import presets


def test_a_worker_trains_and_says_what_it_took(
    learnable: list[str], shared_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", str(shared_cache))
    recipe = presets.fast().with_assignments([*learnable, "budget.amount=3"])
    setting = json.dumps({"recipe": recipe.to_dict(), "steps": 3})
    command = [sys.executable, "-m", "workbench.bench.forecast_worker", setting]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout.splitlines()[-1])
    assert len(said["seconds"]) == len(said["wall_seconds"]) == len(said["reference"]) == 3
    assert said["compile_seconds"] == 0.0
    assert said["tokens"] == 3 * 16 * 32
    assert said["memory_bytes"] > 4 * 3 * said["parameters"]
