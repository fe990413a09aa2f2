"""A sweep in a cell: what stands there, that it follows, and its points at the press of a button."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pytest

from tests.experiments.sweep.conftest import Planned, held, planned, root, tiny
from tests.jupyter.messages import say
from tests.jupyter.watch.test_experiment_view import cell
from tests.tiny_runs import wait_until
from workbench.client.run import Run
from workbench.jupyter import cell_widgets
from workbench.jupyter.saved_output import VIEW
from workbench.jupyter.watch import experiment_panel, experiment_view, sweep_view
from workbench.jupyter.watch.saved_picture import STANDS_ABOVE
from workbench.jupyter.watch.sweep_view import SweepView

__all__ = ["cell", "planned", "root", "tiny"]


def test_its_points_open_their_run_and_their_recipe_below(planned: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep, shown = held(planned()), []
    monkeypatch.setattr(Run, "watch", lambda run: shown.append(run.id))
    monkeypatch.setattr(sweep_view, "display", lambda value, **options: shown.append(value))
    monkeypatch.setattr(sweep_view, "in_page", lambda: True)
    monkeypatch.setattr(experiment_view, "display", lambda value, **options: None)
    view = SweepView(sweep).show()
    assert view.panel is not None
    below, above = shown
    assert below[VIEW]["model_id"]
    # Not "run this cell again": one that holds wb.sweep(...) would begin a second sweep.
    assert below["text/plain"] == (
        f"The buttons of sweep {sweep.folder.name} need a kernel: {sweep.opened_by}.watch() in a new cell has them."
    )
    assert above == STANDS_ABOVE
    wait_until(lambda: view.panel.controls.pick == "3", what="the best point")  # type: ignore[union-attr]
    say(view.panel.controls, {"do": "dot", "pick": "2"})
    assert view.panel.controls.answer == "the run of point 2 is shown below"
    say(view.panel.controls, {"do": "compose"})
    assert view.panel.controls.answer == "the recipe of point 2 is open in the Lab below"
    assert shown[2] == sweep.run(2).id
    assert shown[3].composer.recipe == sweep.recipe(2)
    shown[3].close()
    view.watch("99")
    assert "has no point 99" in shown[4]["text/plain"]
    view.panel.close()


def test_a_cell_run_again_closes_its_pictures_and_what_they_have_opened(
    planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[Any] = []
    opened: list[ipywidgets.Widget] = []

    def watch(_run: Run) -> ipywidgets.Widget:
        opened.append(ipywidgets.HTML())
        return opened[-1]

    monkeypatch.setattr(Run, "watch", watch)
    monkeypatch.setattr(cell_widgets, "shown", noted.append)
    monkeypatch.setattr(sweep_view, "display", lambda value, **options: None)
    monkeypatch.setattr(sweep_view, "in_page", lambda: True)
    monkeypatch.setattr(experiment_view, "display", lambda value, **options: None)
    view = SweepView(held(planned())).show()
    assert view.panel is not None
    view.watch("2")
    view.watch("3")
    assert [each.comm is None for each in opened] == [True, False], "one at a time"
    (below,) = noted
    below.close()
    assert all(each.comm is None for each in (*opened, view.panel, view.panel.controls, below))
    assert view.panel._closed.is_set()


def test_its_words_are_never_behind_its_picture(planned: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    """One look tells both: first the words, then the picture."""
    sweep, told = held(planned()), []
    monkeypatch.setattr(type(sweep), "status", property(lambda _: "sweeping"))

    class Place:
        def update(self, value: dict[str, str], **options: object) -> None:
            told.append(value["text/plain"])

    monkeypatch.setattr(sweep_view, "display", lambda value, **options: None)
    monkeypatch.setattr(sweep_view, "in_page", lambda: True)
    monkeypatch.setattr(experiment_view, "headless", lambda: False)
    monkeypatch.setattr(experiment_view, "display", lambda value, **options: Place())
    monkeypatch.setattr(experiment_panel, "_follow", lambda *_: None)
    view = SweepView(sweep).show()
    assert told == [], "no reader of its own"
    assert view.panel is not None
    monkeypatch.setattr(view.panel, "_show", lambda found: told.append("picture"))
    view.panel.refresh()
    assert ("best of 6: point 3" in told[0], told[1]) == (True, "picture")
    view.panel.close()
