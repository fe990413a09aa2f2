"""The panel of a race or a sweep: what it tells the page, and what the page asks of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.experiments.race import conftest as racing
from tests.experiments.race.conftest import planned, root, tiny
from tests.experiments.sweep import conftest as sweeping
from tests.experiments.sweep.conftest import planned as planned_sweep
from tests.jupyter.messages import say
from tests.tiny_runs import wait_until
from workbench.base.errors import RunError
from workbench.experiments.experiment import Experiment
from workbench.experiments.race.race import Race
from workbench.experiments.race.race_plan import Entry, RacePlan
from workbench.experiments.snapshot import Shown
from workbench.jupyter.watch import experiment_panel
from workbench.jupyter.watch.experiment_panel import THREAD, ExperimentPanel

__all__ = ["planned", "planned_sweep", "root", "tiny"]
Planned = Callable[..., RacePlan]
_PLOTLY = "application/vnd.plotly.v1+json"


@pytest.fixture
def panel_of() -> Iterator[Callable[..., ExperimentPanel]]:
    made = []

    def make(experiment: Experiment[Any, Any], on: Any = None, **options: Any) -> ExperimentPanel:
        made.append(ExperimentPanel(experiment, on or {}, **{"follow": False, **options}))
        assert made[-1].output.outputs == (), "nothing is drawn before a page says how"
        say(made[-1].controls, {"do": "look", "dark": False})
        return made[-1]

    yield make
    for panel in made:
        panel.close()


def figure(panel: ExperimentPanel) -> dict[str, Any]:
    found: dict[str, Any] = panel.output.outputs[0]["data"][_PLOTLY]
    return found


def test_a_race_says_how_it_stands_and_shows_one_picture_at_a_time(planned: Planned, panel_of: Any) -> None:
    panel = panel_of(racing.held(planned(name="<img src=x>")))
    assert panel.refresh()
    shown = panel.controls.shown
    assert (shown["noun"], shown["title"], shown["status"], shown["ended"]) == (
        "race", "Race <img src=x>", "finished", True)  # fmt: skip
    assert shown["lines"][1].startswith("mine is worse than baseline by 0.5")
    assert "time to the baseline" in panel.table.value
    assert "<img src=x" not in panel.table.value
    assert panel.controls.figure == "curves"
    assert "Held-out loss" in figure(panel)["layout"]["title"]["text"]
    assert panel.numbers.value == ""
    say(panel.controls, {"do": "figure", "figure": "differences"})
    say(panel.controls, {"do": "numbers", "on": True})
    panel.refresh()
    assert "Difference" in figure(panel)["layout"]["title"]["text"]
    assert "by seed" in panel.numbers.value
    light = figure(panel)["layout"]["template"]
    say(panel.controls, {"do": "look", "dark": True})
    panel.refresh()
    assert figure(panel)["layout"]["template"] != light
    say(panel.controls, {"do": "figure", "figure": "curves"})
    for room, height in ((300, 300), (90, 240), (2000, 420), ("much", 370)):
        say(panel.controls, {"do": "look", "dark": True, "room": room})
        panel.refresh()
        assert figure(panel)["layout"]["height"] == height, "as high as the pane has room for, within reason"
    say(panel.controls, {"do": "figure", "figure": "differences"})
    for nonsense in (
        {"do": "figure", "figure": "none"},
        {"do": "watch"},
        {"do": "pick", "pick": 3},
        {"do": "pick", "pick": []},
        None,
        {},
    ):
        say(panel.controls, nonsense)
    assert panel.controls.figure == "differences"


def test_a_dot_of_a_race_opens_the_run_of_its_seed(planned: Planned, panel_of: Any) -> None:
    asked: list[tuple[str, str]] = []
    on = {verb: lambda pick, verb=verb: asked.append((verb, pick)) for verb in ("watch", "compose", "dot")}
    race = racing.held(planned())
    panel = panel_of(race, {**on, "report": lambda: "drawing"})
    panel.refresh()
    shown = panel.controls.shown
    assert (shown["picked"], shown["report"], panel.controls.pick) == ("run", True, "baseline seed 0")
    assert ["mine seed 1", "mine seed 1: 2.510"] in shown["picks"]
    say(panel.controls, {"do": "figure", "figure": "differences"})
    panel.refresh()
    dots = next(trace for trace in figure(panel)["data"] if trace.get("customdata"))
    say(panel.controls, {"do": "dot", "pick": dots["customdata"][1]})
    assert (panel.controls.pick, asked) == ("mine seed 1", [("watch", "mine seed 1")])
    assert race.run_of("mine seed 1").id == race.plan.run_id(Entry("mine", 1))
    assert race.recipe_of("mine seed 1").hash == race.recipe_of("mine seed 0").hash, "of the arm: a seed of its own"
    with pytest.raises(RunError, match=r"mine seed 99.*legal: baseline"):
        race.run_of("mine seed 99")
    say(panel.controls, {"do": "report"})
    assert panel.controls.answer == "drawing"


def test_it_follows_a_race_and_cancels_it(planned: Planned, panel_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment_panel, "SECONDS", 0.05)
    folder = racing.written(planned())
    starter = racing.Starter(Race(folder).plan, racing.loss)
    with folder.driver_lock():
        panel = panel_of(Race(folder), follow=True)
        wait_until(lambda: panel.controls.shown.get("lines", [""])[0].startswith("0 of"), what="the first look")
        assert not panel.controls.shown["ended"]
        Race(folder).advance(starter)
        starter.end_all()
        wait_until(lambda: not panel.controls.shown["lines"][0].startswith("0 of"), what="progress")
        say(panel.controls, {"do": "cancel"})
        wait_until(lambda: panel.controls.shown["status"] == "cancelled", what="the end")
    assert panel.controls.answer == "cancelled: nothing ran"
    say(panel.controls, {"do": "cancel"})
    wait_until(lambda: "nothing to cancel" in panel.controls.answer, what="the refusal")
    panel.close()
    wait_until(lambda: not any(each.name == THREAD for each in threading.enumerate()), what="the thread's end")


def test_it_looks_until_runs_of_one_that_was_cancelled_have_stopped(
    planned: Planned, panel_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment_panel, "SECONDS", 0.02)
    race = racing.held(planned())
    going, looks = [2, 2, 1, 0], []

    def shown() -> Shown:
        looks.append(going[min(len(looks), 3)])
        return replace(Race(race.folder).shown(), going=looks[-1])

    monkeypatch.setattr(race, "shown", shown)
    panel = panel_of(race, follow=True)
    wait_until(lambda: len(looks) >= 4, what="the look after the last run's end")
    seen = len(looks)
    time.sleep(0.2)
    assert len(looks) == seen, "then nothing changes any more"
    monkeypatch.setattr(Experiment, "cancel", lambda _self: ["a", "b"])
    say(panel.controls, {"do": "cancel"})
    wait_until(lambda: panel.controls.answer != "", what="the answer")
    assert panel.controls.answer == "cancelled: 2 runs told to stop", "one that has not begun leaves no checkpoint"


def test_one_that_was_deleted_says_so(planned: Planned, panel_of: Any) -> None:
    race = racing.held(planned())
    race.folder.plan.unlink()
    panel = panel_of(race)
    assert not panel.refresh()
    assert "cannot be read" in panel.controls.complaint


def test_points_of_a_sweep_are_picked_and_dots_tell(planned_sweep: Any, panel_of: Any) -> None:
    asked: list[Any] = []

    def compose(pick: str) -> str:
        if pick == "0":
            raise RuntimeError("point 0 has no recipe")
        return f"composed {pick}"

    sweep = sweeping.held(planned_sweep())
    panel = panel_of(sweep, {"dot": asked.append, "compose": compose}, whole=False)
    panel.refresh()
    assert (panel.controls.pick, sweep.best) == ("3", 3)
    # What was best a moment ago is not meant any more; what somebody picks stays.
    panel.controls.pick = "0"
    panel.refresh()
    assert panel.controls.pick == "3"
    assert (panel.controls.shown["picked"], panel.controls.shown["report"]) == ("point", False)
    assert panel.controls.shown["picks"][3][1].endswith(": 1.910 - best")
    say(panel.controls, {"do": "pick", "pick": "1"})
    panel.refresh()
    assert (panel.controls.pick, asked) == ("1", [])
    say(panel.controls, {"do": "compose"})
    assert (panel.controls.pick, panel.controls.answer) == ("1", "composed 1")
    say(panel.controls, {"do": "dot", "pick": "2"})
    assert (panel.controls.pick, asked) == ("2", ["2"])
    say(panel.controls, {"do": "dot", "pick": "99"})
    assert asked == ["2"]
    say(panel.controls, {"do": "pick", "pick": "0"})
    say(panel.controls, {"do": "compose"})
    assert panel.controls.answer == "point 0 has no recipe"
    # Every picture is drawn with its numbers, and dots of each tell their point.
    say(panel.controls, {"do": "numbers", "on": True})
    for key, _ in panel.controls.shown["figures"]:
        say(panel.controls, {"do": "figure", "figure": key})
        panel.refresh()
        assert "<table" in panel.numbers.value
        told = {point for trace in figure(panel)["data"] for point in trace.get("customdata") or []}
        assert told == (set() if key.startswith("importance") else set(map(str, range(6))))
