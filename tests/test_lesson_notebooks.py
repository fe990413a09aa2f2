"""Lessons 60 to 71: what each of them has, and that each runs headless from its first cell to its last."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest

from tests.documents import ROOT, code_cells, without_compiler
from workbench.base.errors import LessonError
from workbench.lessons.record import records

LESSONS = sorted((ROOT / "notebooks").glob("[67]?_*.ipynb"))
GIVEN: dict[str, dict[str, Any]] = {
    "did_it_learn": {"PREDICTION_LOWEST": "usual", "PREDICTION_LEARNED": "usual", "ANSWER": "no: 5.2 is too much"},
    "best_rate": {"PREDICTION_TIMES": "4 times", "PREDICTION_WORSE": "too high", "ANSWER": "far below, to be safe"},
    "bigger_batch": {"PREDICTION_LOSS": "lower", "PREDICTION_LEAST": "adamw", "ANSWER": "never"},
    "removed_part": {"PREDICTION_MOST": "positions", "PREDICTION_BETTER": "none", "ANSWER": "0.1 nats"},
    "minute_eight": {"PREDICTION_GUT": 4, "PREDICTION_EIGHT": 5.5, "ANSWER": "by 0.4 or a little less", "minute": 4},
    "objective": {"PREDICTION_MASK": "masked", "PREDICTION_FLOOR": "causal", "ANSWER": "the masked one"},
}
"""Parameters by which a lesson answers its questions, and spends little."""


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
        assert re.search(r"lesson\.check\((?s:.*?)hints=\[", code)
        assert re.search(r"^## .*at scale", text, re.MULTILINE)

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
    assert not (tmp_path / "runs").exists()


@pytest.mark.extended
@pytest.mark.process
@pytest.mark.parametrize("path", LESSONS, ids=name_of)
def test_headless(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_compiler(monkeypatch)
    given = GIVEN.get(name_of(path))
    if given is None:
        pytest.skip("its own test runs it")
    executed = tmp_path / path.name
    papermill.execute_notebook(
        str(path), str(executed), cwd=str(tmp_path), progress_bar=False,
        parameters={"runs_dir": str(tmp_path / "runs"), **given},
    )  # fmt: skip
    (record,) = records(tmp_path / "runs", name_of(path))
    assert record.predictions
    assert all(each.outcome is not None for each in record.predictions.values())
    shown = str([cell.outputs for cell in code_cells(executed)])
    assert "your prediction: " in shown
    assert "widget-view" not in shown
    assert executed.stat().st_size < 600_000
