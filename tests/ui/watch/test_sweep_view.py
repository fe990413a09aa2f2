"""A sweep in a cell: what stands there, that it follows, and its points at the press of a button."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sweeping.conftest import Planned, Starter, held, planned, root, tiny
from tests.ui.watch.test_experiment_view import Cell, cell
from workbench.experiments.experiment_folder import ENDED
from workbench.runs.run import Run
from workbench.sweeping.advance import advance
from workbench.sweeping.sweep import begin
from workbench.ui.watch import sweep_view
from workbench.ui.watch.sweep_view import SweepView

__all__ = ["cell", "planned", "root", "tiny"]


def test_an_ended_sweep_stands_there_once_without_controls(planned: Planned, cell: Cell) -> None:
    sweep = held(planned(name="<img src=x>"))
    sweep._ipython_display_()
    (shown,) = cell.shown
    assert "best of 6: point 3" in shown["text/plain"]
    assert "<table>" in shown["text/html"]
    assert "<img src=x" not in shown["text/html"]


def test_points_are_offered_as_they_come_and_what_is_chosen_stays(planned: Planned) -> None:
    sweep, starter = begin(*planned()), Starter()
    view = SweepView(sweep)
    assert view.point.value == 0
    view.point.value = 1
    while sweep.folder.read_state()["status"] not in ENDED:
        advance(sweep.folder, starter)
        starter.end_all()
    view.refresh()
    assert view.point.value == 1
    assert view.point.options[3][0].endswith(": 1.910 - best")
    assert SweepView(sweep).point.value == 3


def test_buttons_open_the_run_and_the_recipe_of_a_point(planned: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep, shown = held(planned()), []
    monkeypatch.setattr(Run, "watch", lambda run: shown.append(run.id))
    monkeypatch.setattr(sweep_view, "display", lambda value, **options: shown.append(value))
    view = SweepView(sweep)
    buttons: Any = view.controls.children[1].children
    watch, compose = buttons[1:]
    watch.click()
    compose.click()
    assert shown[0] == sweep.run(3).id
    assert shown[1].composer.recipe == sweep.recipe(3)
    shown[1].close()
    view.point.options = [*view.point.options, ("gone", 99)]
    view.point.value = 99
    watch.click()
    assert "has no point 99" in shown[2]["text/plain"]
