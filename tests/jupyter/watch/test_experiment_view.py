"""A race in a cell: what stands there, and that it follows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.experiments.race.conftest import Starter, held, loss, planned, root, tiny, written
from tests.tiny_runs import wait_until
from workbench.client.run import Run
from workbench.experiments.race.race import Race
from workbench.experiments.race.race_plan import RacePlan
from workbench.jupyter import cell_widgets
from workbench.jupyter.watch import experiment_view
from workbench.jupyter.watch.experiment_view import ExperimentView

__all__ = ["planned", "root", "tiny"]
Planned = Callable[..., RacePlan]


class Cell:
    """The handle of an output, which keeps what was shown."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def __call__(self, data: dict[str, str], **options: Any) -> Cell:
        self.shown.append(data)
        return self

    update = __call__


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    cell = Cell()
    monkeypatch.setattr(experiment_view, "display", cell)
    monkeypatch.setattr(experiment_view, "SECONDS", 0.05)
    return cell


def test_an_ended_race_stands_there_once(planned: Planned, cell: Cell) -> None:
    race = held(planned())
    assert isinstance(race.watch(), ExperimentView)
    (shown,) = cell.shown
    assert "mine is worse than baseline" in shown["text/plain"]
    for text in ("<table>", "data:image/png;base64,", 'alt="race '):
        assert text in shown["text/html"]
    assert "<script" not in shown["text/html"]


def test_a_race_that_goes_on_is_followed_to_its_end(planned: Planned, cell: Cell) -> None:
    folder = written(planned())
    starter = Starter(Race(folder).plan, loss)
    with folder.driver_lock():
        ExperimentView(Race(folder)).show()
        assert "too early to say" in cell.shown[0]["text/plain"]
        while folder.read_state()["status"] == "racing":
            Race(folder).advance(starter)
            starter.end_all()
    wait_until(lambda: "finished" in cell.shown[-1]["text/plain"], what="the last picture")
    assert "mine is worse" in cell.shown[-1]["text/html"]
    wait_until(
        lambda: not any(t.name == experiment_view.THREAD for t in threading.enumerate()), what="the thread's end"
    )


def test_a_cell_run_again_follows_a_race_once(planned: Planned, cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[Any] = []
    monkeypatch.setattr(cell_widgets, "shown", noted.append)
    folder = written(planned())
    with folder.driver_lock():
        view = ExperimentView(Race(folder)).show()
        assert noted == [view]
        view.close()
        wait_until(
            lambda: not any(t.name == experiment_view.THREAD for t in threading.enumerate()), what="the thread's end"
        )
        assert "too early to say" in cell.shown[-1]["text/plain"], "the race goes on"


def test_a_cell_that_is_saved_before_the_end_says_of_when_it_is_and_what_opens_the_race(
    planned: Planned, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that is restarted leaves "racing" in the notebook for ever."""
    folder = written(planned())
    race = Race(folder)
    monkeypatch.setattr(experiment_view, "headless", lambda: True)
    with folder.driver_lock():
        view = ExperimentView(race).show()
        assert (
            f'wb.experiment("{folder.path}").watch() in a new cell shows how it stands' in cell.shown[0]["text/plain"]
        )
        assert cell.shown[0]["text/html"].startswith("<p><em>As of ")
        monkeypatch.setattr(experiment_view, "_minute", lambda: "2026-01-31 08:15")
        view._write(cell)
        view._write(cell)
        assert len(cell.shown) == 2, "nothing is new"
        monkeypatch.setattr(experiment_view, "_minute", lambda: "2026-01-31 08:16")
        view._write(cell)
        assert [each["text/plain"].partition(". ")[0] for each in cell.shown[1:]] == [
            "As of 2026-01-31 08:15", "As of 2026-01-31 08:16"
        ]  # fmt: skip
        assert "as of</th>" in race._repr_html_()
    ended = held(planned())
    ExperimentView(ended).show()
    assert "As of" not in cell.shown[-1]["text/html"] + cell.shown[-1]["text/plain"]
    assert "as of</th>" not in ended._repr_html_()


def test_the_last_look_at_one_that_was_cancelled_comes_after_its_runs_have_stopped(
    planned: Planned, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Run, "ask", lambda run, verb, **_: None)
    folder = written(planned())
    race, starter = Race(folder), Starter(Race(folder).plan, loss)
    Race(folder).advance(starter)
    race.cancel()
    view = ExperimentView(race).show()
    wait_until(lambda: len(cell.shown) > 1, what="a look")
    assert " waiting" in cell.shown[-1]["text/plain"]
    assert not view._write(cell), "its runs have not stopped yet"
    starter.end_all()
    wait_until(lambda: "As of" not in cell.shown[-1]["text/plain"], what="the last look")
    assert " waiting" not in cell.shown[-1]["text/plain"]
