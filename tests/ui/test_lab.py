"""The Lab: the composer's recipe is launched for real, the table watches it, errors are told in the widget."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ui.live import run_folder
from workbench import presets
from workbench.runs import control
from workbench.ui.lab import Lab


@pytest.fixture
def lab(tmp_path: Path, shared_cache: Path, learnable: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setenv("WORKBENCH_CACHE", str(shared_cache))
    recipe = presets.get("fast").with_assignments([*learnable, "budget.amount=100000"])
    made = Lab(recipe, runs_dir=tmp_path / "runs")
    yield made
    for run in made.table.chosen():
        if run.status in ("starting", "running", "paused"):
            run.stop()
            wait_for(made, "stopped")
    made.close()


def wait_for(lab: Lab, status: str, seconds: float = 60) -> None:
    """Until the newest run of the table has a status."""
    deadline = time.monotonic() + seconds
    while lab.table.rows[0]["status"] != status:
        assert time.monotonic() < deadline, lab.table.rows[0]
        time.sleep(0.05)
        lab.table.refresh()


def test_launch_watch_pause_resume_stop(lab: Lab) -> None:
    assert lab.buttons["stop"].disabled
    started = time.monotonic()
    lab.launch_button.click()
    # The handler starts a process; it must not wait for that process's imports.
    assert time.monotonic() - started < 2
    assert "launched" in lab.status.value
    assert [row["id"] for row in lab.table.rows] == lab.table.selected
    assert lab.monitor is not None
    assert [run.id for run in lab.monitor.runs] == lab.table.selected
    assert lab.table.chosen()[0].recipe == lab.composer.recipe
    wait_for(lab, "running")
    assert [lab.buttons[verb].disabled for verb in ("pause", "resume", "stop")] == [False, True, False]
    lab.buttons["pause"].click()
    wait_for(lab, "paused")
    assert [lab.buttons[verb].disabled for verb in ("pause", "resume", "stop")] == [True, False, False]
    lab.buttons["resume"].click()
    wait_for(lab, "running")
    lab.buttons["stop"].click()
    wait_for(lab, "stopped")
    assert lab.buttons["stop"].disabled
    assert not lab.buttons["resume"].disabled


def test_an_invalid_recipe_cannot_be_launched_and_the_button_says_why(lab: Lab) -> None:
    lab.composer.axes["architecture"].part.knobs["heads"].input.source.value = "3"
    assert lab.launch_button.disabled
    assert "3 heads do not divide" in lab.launch_button.tooltip
    lab.composer.axes["architecture"].part.knobs["heads"].input.source.value = "2"
    assert not lab.launch_button.disabled
    assert lab.table.rows == []


def test_an_error_of_a_handler_is_told_in_the_widget(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where the folder should be")
    lab = Lab(presets.get("fast"), runs_dir=tmp_path / "runs")
    lab.launch_button.click()
    assert "lab-bad" in lab.status.value
    assert "cannot take a new run" in lab.status.value
    lab.close()


def test_a_run_that_refuses_does_not_keep_the_others_from_being_asked(tmp_path: Path) -> None:
    old, new = (run_folder(tmp_path / f"2026010{day}-000000-run-abcdef-0000", name=f"day {day}") for day in (1, 2))
    new.control.write_text("a file where the folder should be")
    lab = Lab(presets.get("fast"), runs_dir=tmp_path)
    lab.table.selected = [new.id, old.id]
    lab.buttons["stop"].click()
    assert [request.verb for request in control.pending(old)] == ["stop"]
    assert "asked day 1" in lab.status.value
    assert "could not be written" in lab.status.value
    assert "lab-bad" in lab.status.value
    lab.close()
