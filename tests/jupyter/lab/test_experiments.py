"""Races, sweeps and tunings in the Lab: opened by what the table calls them, in the place of curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.race import conftest as racing
from tests.experiments.race.conftest import planned, root, tiny
from tests.experiments.sweep import conftest as sweeping
from tests.experiments.sweep.conftest import planned as planned_sweep
from tests.experiments.tune import conftest as tunings
from tests.experiments.tune.conftest import planned as planned_tuning
from tests.jupyter.messages import say
from tests.tiny_runs import wait_until
from workbench.base.errors import RunError
from workbench.experiments.race.race import Race
from workbench.jupyter.lab.lab import Lab
from workbench.jupyter.runs.named_experiments import find_experiment, name_of

__all__ = ["planned", "planned_sweep", "planned_tuning", "root", "tiny"]


@pytest.fixture
def lab_of(root: Path) -> Iterator[Callable[..., Lab]]:
    made = []

    def make() -> Lab:
        made.append(Lab(runs_dir=root))
        return made[-1]

    yield make
    for lab in made:
        lab.close()


def test_a_race_is_found_by_the_tag_of_its_runs_and_their_moment(planned: Any, root: Path) -> None:
    race = racing.held(planned(name="deep or wide"))
    name = name_of(race)
    assert name == f"race:deep-or-wide {race.id[:15]}"
    assert find_experiment(name, root).id == race.id
    for gone, why in ((name[:-1] + "x", "not in"), ("race:other " + race.id[:15], "not in"), ("run:x 1", "no race")):
        with pytest.raises(RunError, match=why):
            find_experiment(gone, root)


@pytest.mark.parametrize(
    ("look", "words"),
    [({}, "stand together"), ({"group": "flat"}, "'by experiment' to"), ({"filter": "bert"}, "clear the search to")],
)
def test_where_the_runs_of_a_race_stand_is_said_as_it_is(
    planned: Any, lab_of: Any, look: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    race, lab = racing.held(planned()), lab_of()
    said: list[Any] = []
    monkeypatch.setattr(lab.table, "say", said.append)
    lab.table.look = look
    lab._raced(race)
    assert words in said[0].text


def test_it_stands_in_the_place_of_curves_until_runs_are_watched(planned: Any, lab_of: Any) -> None:
    race = racing.held(planned())
    lab = lab_of()
    ids = [row["id"] for row in lab.table.rows]
    lab.table.watched = ids[:1]
    lab.table.experiment = name_of(race)
    panel = lab.experiments.panel
    assert panel.experiment.id == race.id
    assert lab.experiments.children == (panel,)
    assert [run.id for run in lab.monitor.runs] == ids[:1], "the curves are there when it is closed"
    assert lab.kept["experiment"] == name_of(race)
    other = lab_of()
    other.restore(lab.kept)
    assert other.experiments.panel.experiment.id == race.id
    lab.table.watched = []
    assert lab.experiments.panel is panel, "taking curves away asks for none"
    lab.table.watched = ids[1:2]
    assert (lab.experiments.panel, lab.table.experiment) == (None, "")
    lab.table.experiment = name_of(race)
    say(lab.experiments.panel.controls, {"do": "close"})
    assert (lab.experiments.children, lab.table.experiment) == ((), "")
    lab.table.experiment = "race:gone 20260101-000000"
    assert lab.table.experiment == ""


def test_a_tuning_is_opened_alike_and_gives_the_recipe_that_it_kept(planned_tuning: Any, lab_of: Any) -> None:
    tuning = tunings.held(planned_tuning(name="mine", axes={"architecture.layers": [2, 1]}))
    lab = lab_of()
    lab.table.experiment = name_of(tuning)
    panel = lab.experiments.panel
    assert panel.experiment.folder == tuning.folder
    panel.refresh()
    assert panel.controls.pick == "1"
    say(panel.controls, {"do": "compose"})
    assert lab.composer.recipe == tuning.sweep.recipe(1)
    assert lab.composer.recipe.architecture == tuning.recipe.architecture
    say(panel.controls, {"do": "watch"})
    assert [run.id for run in lab.monitor.runs] == [tuning.sweep.run(1).id]
    # The pictures of its race have dots, too.
    lab.table.experiment = name_of(tuning)
    panel = lab.experiments.panel
    panel.refresh()
    pick, _ = panel.controls.shown["picks"][-1]
    say(panel.controls, {"do": "dot", "pick": pick})
    assert [run.id for run in lab.monitor.runs][-1] == tuning.race.run_of(pick).id


def test_its_report_is_written_beside_it_and_opens_over_the_lab(
    planned: Any, lab_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    race, lab, sent = racing.held(planned(name="<b>mine")), lab_of(), []
    monkeypatch.setattr(lab.table, "send", lambda content, buffers=None: sent.append((content, buffers)))
    lab.table.experiment = name_of(race)
    controls = lab.experiments.panel.controls
    say(controls, {"do": "report"})
    wait_until(lambda: any(content["type"] == "sheet" for content, _ in sent), what="the report")
    (sheet, pages), = [each for each in sent if each[0]["type"] == "sheet"]  # fmt: skip
    path = race.folder.path / "report.html"
    assert (sheet["kind"], sheet["title"], sheet["path"]) == ("report", "Report of race <b>mine", str(path))
    assert pages == [path.read_bytes()]
    wait_until(lambda: controls.answer == "", what="the panel's rest")
    monkeypatch.setattr(Race, "report", lambda self: (_ for _ in ()).throw(OSError("no room")))
    say(controls, {"do": "report"})
    wait_until(lambda: controls.answer == "report: no room", what="why there is none")


def test_a_dot_selects_its_run_and_composes_its_recipe(planned_sweep: Any, lab_of: Any) -> None:
    sweep = sweeping.held(planned_sweep())
    lab = lab_of()
    before = lab.composer.recipe
    lab.table.experiment = name_of(sweep)
    panel = lab.experiments.panel
    panel.refresh()
    say(panel.controls, {"do": "dot", "pick": "2"})
    assert lab.table.selected == [sweep.run(2).id]
    assert lab.composer.recipe == sweep.recipe(2)
    assert "undo takes it back" in panel.controls.answer
    lab.composer.undo()
    assert lab.composer.recipe == before
    say(panel.controls, {"do": "watch"})
    assert lab.experiments.panel is None
    assert [run.id for run in lab.monitor.runs] == [sweep.run(2).id]
