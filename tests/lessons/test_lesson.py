"""Predictions, outcomes and checks of a lesson: kept in real files, refused in words."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import workbench as wb
from workbench.base.errors import LessonError
from workbench.lessons.record import Record, path_of, read, records

ABC = ("A", "B", "C")


@pytest.fixture
def lesson(tmp_path: Path) -> wb.Lesson:
    return wb.Lesson("did_it_learn", learner="ada", runs=tmp_path)


def test_a_prediction_is_kept_and_meets_its_outcome(
    lesson: wb.Lesson, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lesson.predict("which", "Which has learned?", options=ABC)
    assert "not committed yet: A, B, C" in capsys.readouterr().out
    lesson.predict("which", "Which has learned?", options=ABC, given="B")
    assert "your prediction: B, committed at" in capsys.readouterr().out
    # As after a kernel restart.
    again = wb.Lesson("did_it_learn", learner="ada", runs=tmp_path)
    again.predict("which", "Which has learned?", options=ABC)
    assert again.committed("which") == "B"
    again.outcome("which", "C", why="Only C lies below the floor.")
    said = capsys.readouterr().out
    assert "the outcome: C\n  not this time\n  Only C lies below the floor." in said
    stored = json.loads((tmp_path / "lessons" / "did_it_learn" / "ada.json").read_text())
    assert {**stored, "account": None, "predictions": None} == {
        "schema": 1, "lesson": "did_it_learn", "learner": "ada", "account": None, "predictions": None, "checks": {},
    }  # fmt: skip
    which = stored["predictions"]["which"]
    assert which.pop("outcome_at") >= which.pop("made_at") > 1e9
    assert which == {
        "question": "Which has learned?", "unit": "", "value": "B", "outcome": "C", "right": False, "error": None
    }  # fmt: skip


def test_its_files_lie_beside_the_answers_and_belong_to_whom_the_runs_do(lesson: wb.Lesson, tmp_path: Path) -> None:
    tmp_path.chmod(0o2775)
    assert lesson.folder == tmp_path / "lessons" / "did_it_learn" / "ada"
    assert {each.stat().st_mode & 0o7777 for each in (lesson.folder, *lesson.folder.parents[:2])} == {0o2775}


def test_a_number_has_an_error_and_its_first_outcome_counts(
    lesson: wb.Lesson, capsys: pytest.CaptureFixture[str]
) -> None:
    lesson.predict("loss", "Loss?", unit="nats", low=2, high=12, given="4,5")
    lesson.predict("share", "Share?", unit="%", low=0, high=100, given="20 %")
    lesson.outcome("share", 50)
    assert "off by 30 percentage points: too low" in capsys.readouterr().out
    lesson.outcome("loss", 4.75)
    assert "off by 0.25 nats: too low" in capsys.readouterr().out
    lesson.outcome("loss", 5)
    assert "this time: 5 nats; the first outcome is the one that counts" in capsys.readouterr().out
    kept = lesson.record().predictions["loss"]
    assert (kept.value, kept.outcome, kept.error, kept.right) == (4.5, 4.75, -0.25, None)


def test_what_was_committed_to_stands(lesson: wb.Lesson) -> None:
    lesson.predict("which", "?", options=ABC, given="B")
    lesson.predict("which", "?", options=ABC, given="B")
    with pytest.raises(LessonError, match=r"'C' comes too late: ada committed to 'B' at .*lesson\.restart\(\)"):
        lesson.predict("which", "?", options=ABC, given="C")
    lesson.restart()
    lesson.predict("which", "?", options=ABC, given="C")
    assert lesson.committed("which") == "C"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("four", "lesson did_it_learn, loss: 'four' is no number; give a number from 2 to 12 nats"),
        (True, "'True' is no number"),
        (math.nan, "'nan' is no number"),
        (1.5, "1.5 is out of range; give a number from 2 to 12 nats"),
        ([4], "is no number"),
    ],
)
def test_no_number(lesson: wb.Lesson, given: object, said: str) -> None:
    with pytest.raises(LessonError, match=said):
        lesson.predict("loss", "Loss?", unit="nats", low=2, high=12, given=given)
    assert lesson.record().predictions == {}


def test_no_option(lesson: wb.Lesson) -> None:
    with pytest.raises(LessonError, match=r"which: unknown answer 'b'; .*legal: A, B, C"):
        lesson.predict("which", "?", options=ABC, given="b")
    lesson.predict("which", "?", options=ABC, given="B")
    with pytest.raises(LessonError, match=r"unknown answer 'D'"):
        lesson.outcome("which", "D")
    with pytest.raises(LessonError, match="two or more different options, or for a number"):
        lesson.predict("other", "?")


def test_an_experiment_waits_for_its_prediction(lesson: wb.Lesson, tmp_path: Path) -> None:
    with pytest.raises(LessonError, match="commit to a prediction first") as refused:
        lesson.committed("which")
    # A notebook that was moved has another ./runs: where it looks, and how to say where else.
    assert str(tmp_path) in str(refused.value)
    assert "then run this cell again" in str(refused.value)
    assert "if the notebook was moved, set runs_dir" in str(refused.value)
    with pytest.raises(LessonError, match="commit to a prediction first"):
        lesson.outcome("which", "A")


def test_a_check_hints_until_it_is_right(lesson: wb.Lesson, capsys: pytest.CaptureFixture[str]) -> None:
    def answer(given: str | None) -> str:
        lesson.check(
            "floor", "Which floor?", options=ABC, answer="C", hints=["Look up.", "Look left."], why="So.", given=given
        )
        return capsys.readouterr().out

    assert "not answered yet" in answer(None)
    assert "Not “A”. Look up." in answer("A")
    assert "Not “B”. Look left." in answer("B")
    assert "Not “B”. Look left." in answer("B")
    assert "C: right, 4th answer\n  So." in answer("C")
    assert "C: right, 4th answer" in answer(None)
    check = lesson.record().checks["floor"]
    assert (check.tries, check.right) == (4, True)
    lesson.summary()
    assert "Which floor?" in capsys.readouterr().out


def test_two_learners_with_one_name(lesson: wb.Lesson, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lesson.predict("which", "?", options=ABC, given="B")
    monkeypatch.setenv("JUPYTERHUB_USER", "the-other-ada")
    with pytest.raises(LessonError, match=r"'ada' is the name of somebody else.*learner='ada 2'"):
        wb.Lesson("did_it_learn", learner="ada", runs=tmp_path)
    wb.Lesson("did_it_learn", learner="ada 2", runs=tmp_path).predict("which", "?", options=ABC, given="A")
    assert [each.learner for each in records(tmp_path, "did_it_learn")] == ["ada 2", "ada"]


def test_a_learner_s_name_is_no_path(tmp_path: Path) -> None:
    wb.Lesson("x", learner="../ada/b", runs=tmp_path).predict("which", "?", options=ABC, given="A")
    assert [each.learner for each in records(tmp_path, "x")] == ["../ada/b"]
    assert [path.name for path in tmp_path.iterdir()] == ["lessons"]
    with pytest.raises(LessonError, match="a lesson is called as its notebook"):
        wb.Lesson("../x", runs=tmp_path)


def test_the_learner_is_called_as_their_runs_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_OWNER", "grace")
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path))
    lesson = wb.Lesson("x")
    assert (lesson.learner, lesson.runs) == ("grace", tmp_path)


def test_folders_are_as_open_as_the_runs_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o2775)
    wb.Lesson("x", learner="ada", runs=tmp_path).predict("which", "?", options=ABC, given="A")
    assert [(tmp_path / each).stat().st_mode & 0o777 for each in ("lessons", "lessons/x")] == [0o775, 0o775]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = path_of(tmp_path, "x", "ada")
    Record(lesson="x", learner="ada").write(path)
    assert read(path) == Record(lesson="x", learner="ada")
    path.write_text('{"schema": 2, "lesson": "x", "learner": "ada"}')
    with pytest.raises(LessonError, match="newer version"):
        wb.Lesson("x", learner="ada", runs=tmp_path)
    path.write_text('{"schema": 1,')
    with pytest.raises(LessonError, match="damaged; delete it to begin"):
        wb.Lesson("x", learner="ada", runs=tmp_path)
    assert records(tmp_path, "x") == []
    blocked = tmp_path / "file"
    blocked.write_text("")
    lesson = wb.Lesson("x", learner="ada", runs=blocked)
    with pytest.raises(LessonError, match="could not be kept"):
        lesson.predict("which", "?", options=ABC, given="A")
