"""A Lab of tiny recipes, whose runs are stopped with the test."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench import presets
from workbench.client.run import Run
from workbench.jupyter.lab.lab import Lab


@pytest.fixture
def lab(tmp_path: Path, learnable: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    recipe = presets.get("fast").with_assignments([*learnable, "budget.amount=100000"])
    made = Lab(recipe, runs_dir=tmp_path / "runs")
    yield made
    for row in made.table.rows:
        run = Run(row["id"], tmp_path / "runs")
        if run.status in ("starting", "running", "paused"):
            run.stop()
            wait_for(made, run.id, "stopped")
    made.close()


def wait_for(lab: Lab, run_id: str, status: str, seconds: float = 60) -> None:
    """Until a row of the table has a status."""
    deadline = time.monotonic() + seconds
    while (found := {row["id"]: row["status"] for row in lab.table.rows}.get(run_id)) != status:
        assert time.monotonic() < deadline, f"{run_id} is {found}"
        time.sleep(0.05)
        lab.table.refresh()
