"""The notebook of a sweep, under papermill: a sweep that has ended is shown and written down."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import papermill
import pytest

from tests.experiments.sweep.conftest import Planned, held

NOTEBOOK = Path(__file__).parents[3] / "notebooks" / "22_sweep.ipynb"
MOST_OUTPUT_BYTES = 300_000


@pytest.mark.extended
@pytest.mark.process
def test_it_leaves_everything_behind(planned: Planned, root: Path, tmp_path: Path) -> None:
    sweep, target = held(planned()), tmp_path / "out.ipynb"
    parameters = {"sweep_id": sweep.id, "runs_dir": str(root), "results_path": "out/sweep.json"}
    papermill.execute_notebook(str(NOTEBOOK), str(target), cwd=str(tmp_path), progress_bar=False, parameters=parameters)
    assert json.loads((tmp_path / "out" / "sweep.json").read_text())["best"]["point"] == 3
    assert (tmp_path / "sweep.html").exists()
    assert target.stat().st_size < MOST_OUTPUT_BYTES
    cells = {cell.id: cell for cell in nbformat.read(target, as_version=4).cells}
    for name in ("watch", "result"):
        # Nobody saw it: no controls, which a saved notebook could not use.
        (shown,) = cells[name].outputs
        assert "data:image/png;base64," in shown["data"]["text/html"]
        assert "chosen on its own score" in shown["data"]["text/plain"]
