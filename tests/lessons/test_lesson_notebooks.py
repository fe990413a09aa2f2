"""Lessons 60 to 71: what each has; and executed as CI executes them: predictions given, small, findings asserted.

They train on the documentation that every machine has, so nothing is skipped.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import papermill
import pytest
from papermill.exceptions import PapermillExecutionError

from tests.documents import ROOT, code_cells
from workbench.base.errors import LessonError

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
LESSONS = sorted((ROOT / "notebooks").glob("[67]?_*.ipynb"))
MOST_OUTPUT_BYTES = 1_000_000


def name_of(path: Path) -> str:
    """``did_it_learn`` of ``60_did_it_learn.ipynb``."""
    return path.stem.partition("_")[2]


def prose(path: Path) -> str:
    """All Markdown of a notebook."""
    return "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown")


def test_they_are_ordered_on_one_page() -> None:
    page = (ROOT / "docs" / "lessons.md").read_text(encoding="utf-8")
    assert {path.stem for path in LESSONS} <= set(re.findall(r"[67]\d_\w+", page))


@pytest.mark.parametrize("path", LESSONS, ids=name_of)
class TestStructure:
    def test_what_a_lesson_has(self, path: Path) -> None:
        text, cells = prose(path), [cell.source for cell in code_cells(path)]
        assert "**The question.**" in text.split("\n## ")[0]
        code = "\n".join(cells)
        # Under the name by which boards find it.
        assert f'wb.Lesson("{name_of(path)}", ' in code
        for asked in ("predict", "committed", "outcome", "check", "summary"):
            assert f"lesson.{asked}(" in code, asked
        (check,) = (cell for cell in cells if "lesson.check(" in cell)
        assert check.count("hints=[") == 1
        assert "*" not in check, "hints are shown as plain text"
        assert re.search(r"^## .*at scale", text, re.MULTILINE)

    def test_what_holds_answers_is_folded(self, path: Path) -> None:
        telling = re.compile(r"^(?:assert |    assert |lesson\.check\()", re.MULTILINE)
        folded = [cell.metadata.get("jupyter") for cell in code_cells(path) if telling.search(cell.source)]
        assert folded == [{"source_hidden": True}] * len(folded) != []

    def test_three_readings_with_full_references(self, path: Path) -> None:
        (readings,) = re.findall(r"^## (?:Read on|Three readings)\n(.*)", prose(path), re.MULTILINE | re.DOTALL)
        entries = re.findall(r"^[*-] (.*)", readings, re.MULTILINE)
        assert len(entries) == 3
        for entry in entries:
            # Authors, title, year, a place to find it: a link or pages.
            assert re.search(r"[A-Z]\w+.*, \*[^*]+\*.*\b(?:19|20)\d\d\b.*(?:\]\(https://|\bpp\. )", entry), entry

    def test_each_prediction_comes_before_its_experiment(self, path: Path) -> None:
        sources = [cell.source for cell in code_cells(path)]
        keys = dict.fromkeys(re.findall(r'lesson\.predict\(\s*"(\w+)"', "\n".join(sources)))
        assert keys
        for key in keys:
            asked, needed, told = (
                next(i for i, source in enumerate(sources) if re.search(rf'lesson\.{verb}\(\s*"{key}"', source))
                for verb in ("predict", "committed", "outcome")
            )
            assert asked < needed <= told, key

    def test_its_answers_are_parameters(self, path: Path) -> None:
        parameters = papermill.inspect_notebook(str(path))
        answers = {name for name in parameters if name.startswith(("PREDICTION", "ANSWER"))}
        assert any(name.startswith("PREDICTION") for name in answers)
        assert any(name.startswith("ANSWER") for name in answers)
        assert {parameters[name]["default"] for name in answers} == {"None"}
        assert "runs_dir" in parameters


def test_every_lesson_is_run_headless() -> None:
    assert set(GIVEN) == {path.stem for path in LESSONS}


def test_an_experiment_refuses_to_begin_without_a_prediction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for cell in code_cells(LESSONS[0]):
        if cell.id == "launch":
            break
        exec(cell.source, names)
        if cell.id == "parameters":
            names["runs_dir"] = str(tmp_path / "runs")
    with pytest.raises(LessonError, match="commit to a prediction first"):
        exec(cell.source, names)
    assert [each.name for each in tmp_path.iterdir()] == ["runs"], "its files lie in the runs folder"
    assert not list((tmp_path / "runs").glob("*/recipe.json"))


def test_a_race_that_compared_nothing_has_an_outcome() -> None:
    """Twenty steps of lesson 70 learn nothing: the race is undecided and has no interval."""
    path = ROOT / "notebooks" / "70_is_it_real.ipynb"
    (source,) = (cell.source for cell in code_cells(path) if cell.id == "outcome-race")
    told: list[tuple[str, ...]] = []
    names: dict[str, Any] = {
        "lesson": SimpleNamespace(outcome=lambda *each: told.append(each)),
        "found": {"verdict": "undecided", "interval": None, "difference": None, "summary": "Nothing was compared."},
    }
    exec(source.replace("await race.wait()", "found"), names)
    assert told == [("race", "undecided", "Nothing was compared.")]


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
