"""The notebook of a race, under papermill: a race that has ended is shown, judged and written down."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest
from papermill.exceptions import PapermillExecutionError

from tests.experiments.race.conftest import held
from workbench.experiments.race.race_plan import RacePlan

NOTEBOOK = Path(__file__).parents[3] / "notebooks" / "20_race.ipynb"
MOST_OUTPUT_BYTES = 300_000


@pytest.mark.extended
@pytest.mark.process
def test_a_regression_fails_it_and_leaves_everything_behind(
    planned: Callable[..., RacePlan], root: Path, tmp_path: Path
) -> None:
    race = held(planned())
    parameters = {"race_id": race.id, "runs_dir": str(root), "results_path": str(tmp_path / "out" / "race.json"),
                  "report_path": str(tmp_path / "out" / "race.html")}  # fmt: skip
    target = tmp_path / "race.ipynb"
    with pytest.raises(PapermillExecutionError, match="mine is worse than baseline") as error:
        papermill.execute_notebook(str(NOTEBOOK), str(target), cwd=str(tmp_path), progress_bar=False,
                                   parameters=parameters)  # fmt: skip
    assert error.value.ename == "TargetMissed"
    assert json.loads((tmp_path / "out" / "race.json").read_text())["verdict"] == "worse"
    suite = ElementTree.parse(tmp_path / "out" / "race.xml").getroot()
    assert (suite.get("errors"), suite.get("failures")) == ("0", "1")
    assert "mine is worse than baseline" in (tmp_path / "out" / "race.html").read_text()
    assert target.stat().st_size < MOST_OUTPUT_BYTES
    cells: dict[str, Any] = {cell.id: cell for cell in nbformat.read(target, as_version=4).cells}
    assert not any(each.output_type == "execute_result" for each in cells["begin"].outputs), "a stray {}"
    (shown,) = (each for each in cells["result"].outputs if "text/html" in each.get("data", {}))
    assert "data:image/png;base64," in shown.data["text/html"]
    assert "mine is worse" in shown.data["text/plain"]
