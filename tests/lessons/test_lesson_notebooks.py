"""The lessons, executed as CI executes them: predictions given, small budgets, findings asserted by the notebooks.

They train on the documentation that every machine has, so nothing is skipped.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest
from papermill.exceptions import PapermillExecutionError

from tests.documents import ROOT, code_cells

GIVEN: dict[str, dict[str, Any]] = {
    "60_did_it_learn": {
        "PREDICTION_LOWEST": "slow", "PREDICTION_LEARNED": "usual", "ANSWER": "that depends on the floor of this text",
    },
    "61_best_rate": {
        "PREDICTION_TIMES": "4 times", "PREDICTION_WORSE": "too high", "ANSWER": "just below the rate that breaks",
    },
    "62_bigger_batch": {
        "PREDICTION_LOSS": "the same", "PREDICTION_LEAST": "lans",
        "ANSWER": "when more devices compute it at the same time",
    },
    "63_removed_part": {
        "PREDICTION_MOST": "positions", "PREDICTION_BETTER": "none", "ANSWER": "one has to try",
    },
    "64_minute_eight": {
        "PREDICTION_GUT": 4, "PREDICTION_EIGHT": 3.5, "ANSWER": "by 0.4 or a little less", "minute": 15,
    },
    "65_objective": {
        "PREDICTION_MASK": "masked", "PREDICTION_FLOOR": "causal", "ANSWER": "the two numbers do not say",
    },
    "66_layer_dropping": {
        "PREDICTION_ONCE": "lower", "PREDICTION_TWENTY": "lower", "ANSWER": "it regularises",
    },
    "67_grow_or_whole": {
        "PREDICTION_STEPS": 500, "PREDICTION_BEST": "whole", "PREDICTION_LONGER": "stays", "ANSWER": "training whole",
        "longer": 2,
    },
    "68_what_was_filtered": {
        "PREDICTION_PROSE": 10, "PREDICTION_BEST": "filtered", "ANSWER": "as much text, removed at random",
    },
    "69_where_seconds_go": {
        "PREDICTION_PART": "forward", "PREDICTION_PADDING": 10, "PREDICTION_TWO": 1.8, "ANSWER": "backward",
        "tokens": 40_000, "rounds": 1, "compiled": False,
    },
    "70_is_it_real": {
        "PREDICTION_ONE": 10, "PREDICTION_FOUR": 5, "PREDICTION_RACE": "equivalent", "ANSWER": "it pairs the seeds",
    },
    "71_lower_loss_better": {
        "PREDICTION_WHERE": "both alike", "PREDICTION_GRAMMAR": "better", "blimp": "no-such-folder",
        "ANSWER": "the loss where the window is new, and a downstream score",
    },
}  # fmt: skip
"""Parameters by notebook: what a learner may answer, right or wrong, and what makes it small."""
MOST_OUTPUT_BYTES = 1_000_000


@pytest.mark.parametrize("stem", GIVEN)
def test_nothing_is_launched_before_a_prediction(stem: str) -> None:
    """The first cell that launches runs asks for a committed prediction, or one before it has."""
    sources = [cell.source for cell in code_cells(ROOT / "notebooks" / f"{stem}.ipynb")]
    committed = next(place for place, source in enumerate(sources) if "lesson.committed(" in source)
    assert committed <= next(place for place, source in enumerate(sources) if "wb.launch(" in source)
    whole = "\n".join(sources)
    assert whole.count("lesson.predict(") == whole.count("lesson.outcome(") >= 2


@pytest.mark.parametrize("stem", GIVEN)
def test_the_parts_of_a_lesson(stem: str) -> None:
    """A question, a check with hints, what changes at scale, and three readings with a place to find each."""
    cells = nbformat.read(ROOT / "notebooks" / f"{stem}.ipynb", as_version=4).cells
    assert "**The question.**" in cells[0].source
    (check,) = (cell.source for cell in cells if "lesson.check(" in cell.source)
    assert check.count("hints=[") == 1
    assert "*" not in check, "hints are shown as plain text"
    assert "## What changes at scale" in cells[-1].source
    readings = cells[-1].source.partition("## Read on")[2].strip().splitlines()
    assert len(readings) == 3
    assert all(re.fullmatch(r"\* .+, \*.+\*, .*(19|20)\d\d.*: .+\.", line) for line in readings), readings


@pytest.mark.extended
@pytest.mark.process
@pytest.mark.parametrize("stem", GIVEN)
def test_headless(stem: str, tmp_path: Path) -> None:
    executed = _execute(stem, tmp_path, **GIVEN[stem])
    assert executed.stat().st_size < MOST_OUTPUT_BYTES
    (kept,) = (tmp_path / "runs" / "lessons" / stem[3:]).glob("*.json")
    found = json.loads(kept.read_text())
    assert all(each["outcome"] is not None for each in found["predictions"].values())
    assert [each["right"] for each in found["checks"].values()] == [True]
    if stem == "71_lower_loss_better":
        assert "BLiMP is not here. To have it, put blimp.jsonl" in executed.read_text()


@pytest.mark.extended
@pytest.mark.process
def test_a_learner_who_has_predicted_nothing_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(PapermillExecutionError, match="commit to a prediction first") as error:
        _execute("66_layer_dropping", tmp_path)
    assert error.value.ename == "LessonError"
    assert not list((tmp_path / "runs").glob("*/recipe.json"))


def _execute(stem: str, place: Path, **parameters: Any) -> Path:
    path = place / f"{stem}.ipynb"
    papermill.execute_notebook(
        str(ROOT / "notebooks" / path.name), str(path), cwd=str(place), progress_bar=False,
        parameters={"runs_dir": str(place / "runs"), **parameters},
    )  # fmt: skip
    return path
