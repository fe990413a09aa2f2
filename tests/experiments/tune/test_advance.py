"""A tuning brought forward stage by stage: first a sweep on tuning text, then a race on that of results."""

from __future__ import annotations

import contextlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.experiments.sweep.conftest import FLOOR, Starter, Trained, finish
from tests.experiments.tune.conftest import Planned, held
from tests.forecasting.machine_rates import RATES
from workbench.base.errors import RunError, RunFailed
from workbench.client.run import Run
from workbench.experiments.tune.tune import begin
from workbench.experiments.tune.tuning_words import TuningSnapshot
from workbench.recipes.recipe import Recipe
from workbench.store.state import write_state


def test_settings_are_chosen_on_tuning_text_and_the_race_is_run_on_that_of_results(
    planned: Planned, tiny: Recipe
) -> None:
    starter = Trained()
    recipes: list[Recipe] = []

    def start(recipe: Recipe, **options: str) -> Run:
        recipes.append(recipe)
        return starter(recipe, **options)

    tuning = begin(*planned(race_seeds=6))
    while tuning.folder.read_state()["status"] == "tuning":
        tuning.advance(start, RATES)
        starter.end_all()
    kinds = [recipe.data.kind for recipe in recipes]
    tuned = kinds.count("tuning_text")
    assert kinds == ["tuning_text"] * tuned + ["files"] * (len(kinds) - tuned)
    assert {recipe.seed for recipe in recipes[:tuned]} == {1000, 1001}
    assert {recipe.seed for recipe in recipes[tuned:]} <= set(range(6))
    assert (tuning.status, tuning.stage) == ("finished", "confirmed")
    found = tuning.recipe
    assert (found.optimizer.lr, found.architecture.layers, found.seed) == (8e-3, 1, 0)
    assert found.data == tiny.data
    assert tuning.race.plan.arms["before"]["data"]["kind"] == "files"
    result = json.loads(tuning.folder.evidence.read_text())
    # The claim is the race's, and no score that settings were chosen on stands beside it.
    assert result["difference"] == tuning.race.result.difference < 0
    assert result["verdict"] == "better"
    assert "heldout_loss" not in result
    assert result["changed"] == {"optimizer.lr": [1e-3, 8e-3], "architecture.layers": [2, 1]}
    assert [setting["point"] for setting in result["settings"] if setting["kept"]] == [0, 4, 6]
    assert [step["kept"] for step in result["steps"]] == [True, True, False, False]


def test_until_its_race_is_over_it_is_not_confirmed(planned: Planned) -> None:
    tuning = held(planned(), until="tuned, not yet confirmed")
    assert "tuned, not yet confirmed: optimizer.lr 0.001 -> 0.008" in tuning.summary
    result = tuning.result
    assert (result.verdict, result.difference, result.speedup) == ("undecided", None, None)
    assert not any(line.startswith("confirmed") for line in tuning.summary.splitlines())


def test_where_nothing_pays_there_is_no_race(planned: Planned) -> None:
    tuning = held(planned(axes={"architecture.layers": [2, 3]}))
    assert (tuning.status, tuning.stage) == ("finished", "nothing paid")
    assert "the recipe stays as it was" in tuning.summary
    assert tuning.recipe.architecture.layers == 2
    with pytest.raises(RunError, match="has no race: nothing that was tried pays"):
        _ = tuning.race


def test_what_tuning_likes_and_the_race_does_not_is_not_confirmed(planned: Planned) -> None:
    class Lucky(Trained):
        """More layers look better by 0.3 on tuning text, and are worse by 0.3 on any other."""

        def end_all(self) -> None:
            for folder, recipe in self.going:
                sign = -1 if recipe.data.kind == "tuning_text" else 1
                finish(folder, 2.0 + sign * 0.3 * (recipe.architecture.layers == 3) + 0.01 * (recipe.seed % 3))
            self.going.clear()

    tuning = held(planned(axes={"architecture.layers": [2, 3]}), Lucky())
    assert (tuning.status, tuning.stage) == ("finished", "not confirmed")
    assert "not confirmed: architecture.layers 2 -> 3; keep the recipe that you began from" in tuning.summary
    assert "tuned is worse than before by 0.300 nats" in tuning.summary


def test_runs_that_stay_at_word_frequencies_are_not_raced(planned: Planned) -> None:
    class TooShort(Trained):
        """A layer less is better, and no seed gets further below word frequencies than nothing is learned from."""

        def end_all(self) -> None:
            for folder, recipe in self.going:
                finish(folder, FLOOR - 0.05 + 0.3 * (recipe.architecture.layers - 1) + 0.001 * (recipe.seed % 2))
            self.going.clear()

    tuning = held(planned(axes={"architecture.layers": [2, 1]}, each="5 s"), TooShort())
    assert (tuning.status, tuning.stage) == ("failed", "tuned, not yet confirmed")
    assert "in 5 s not even the best setting got more than 0.1 nats below word frequencies" in tuning.summary
    assert tuning.result.error in tuning.summary
    assert not tuning.plan.race.path.exists()


def test_where_no_run_leaves_word_frequencies_and_nothing_pays_that_is_said_everywhere(
    planned: Planned, tmp_path: Path
) -> None:
    class TooShort(Trained):
        def end_all(self) -> None:
            for folder, recipe in self.going:
                finish(folder, FLOOR + 0.5 + 0.1 * (recipe.seed % 2))
            self.going.clear()

    tuning = held(planned(axes={"architecture.layers": [2, 1]}, each="5 s"), TooShort())
    assert tuning.stage == "nothing paid"
    said = "in 5 s no run got more than 0.1 nats below word frequencies"
    way_out = "give each run more time (each=..., `--each`)"
    (line,) = (line for line in tuning.summary.splitlines() if said in line)
    assert line.endswith(way_out)
    assert line in tuning.shown().lines
    assert said in tuning.report(tmp_path / "r.html").read_text()
    assert said not in held(planned(axes={"architecture.layers": [2, 3]}, name="learned")).summary


def test_a_driver_that_is_killed_anywhere_loses_nothing(planned: Planned) -> None:
    tuning, starter = begin(*planned(axes={"architecture.layers": [2, 1]})), Trained()

    def killed(*_: object, **__: object) -> Run:
        raise RunError("killed")

    while tuning.folder.read_state()["status"] == "tuning":
        for start in (killed, starter):
            with contextlib.suppress(RunError):
                tuning.advance(start, RATES)
        starter.end_all()
    assert tuning.stage == "confirmed"
    assert [row["changed"] for row in tuning.rows] == [{}, {"architecture.layers": 1}]
    names = [(recipe.name, recipe.budget.amount) for recipe in starter.launched]
    assert len(names) == len(set(names)), "every run once"


def test_cancelling_ends_both_stages_for_good(planned: Planned) -> None:
    tuning, starter = begin(*planned()), Starter()
    tuning.advance(starter, RATES)
    assert tuning.cancel() == [folder.id for folder, _ in starter.going] != []
    assert (tuning.status, tuning.sweep.status, tuning.stage) == ("cancelled", "cancelled", "tuning")
    assert "cancelled: 0 of at most 19 settings done" in tuning.summary
    assert "now optimizer.lr" not in tuning.summary
    with pytest.raises(RunError, match="is cancelled: it cannot be resumed; start it anew"):
        tuning.resume()
    with pytest.raises(RunFailed, match="cancelled: it cannot be resumed"):
        tuning.wait_blocking()
    at_once = begin(*planned())
    at_once.cancel()
    assert "waiting for" not in at_once.summary
    launched = len(starter.launched)
    tuning.advance(starter, RATES)
    assert len(starter.launched) == launched
    with pytest.raises(RunError, match="is cancelled"):
        tuning.cancel()


def test_a_stage_that_somebody_ends_fails_it_with_the_reason(planned: Planned) -> None:
    tuning, starter = begin(*planned()), Trained()
    tuning.advance(starter, RATES)
    for folder, _ in starter.going:
        write_state(folder, status="failed", error="out of memory")
    tuning.sweep.folder.write_state("cancelled", "")
    tuning.advance(starter, RATES)
    assert (tuning.status, tuning.message) == ("failed", "its sweep cancelled")


def test_what_was_found_stays_where_the_runs_that_found_it_were_deleted_for_good(planned: Planned) -> None:
    tuning, starter = begin(*planned()), Trained()
    while tuning.stage != "tuned, not yet confirmed":
        tuning.advance(starter, RATES)
        starter.end_all()
    tuning.advance(starter, RATES)
    tried = [run for row in tuning.rows for run in row["runs"].values()]
    for run in tried:
        shutil.rmtree(Path(tuning.plan.runs_dir) / run)
    while tuning.folder.read_state()["status"] == "tuning":
        starter.end_all()
        tuning.advance(starter, RATES)
    assert (tuning.status, tuning.stage) == ("finished", "confirmed")
    assert (tuning.recipe.optimizer.lr, tuning.recipe.architecture.layers) == (8e-3, 1)
    assert "confirmed: optimizer.lr 0.001 -> 0.008, architecture.layers 2 -> 1" in tuning.summary
    assert "the search was not over" not in tuning.summary


def test_whose_turn_it_is_where_a_knob_takes_none(planned: Planned) -> None:
    axes = {"depth.theta": [0.5, 0.7], "architecture.layers": [2, 3], "depth.kind": ["full", "progressive_drop"]}
    tuning = held(planned(axes=axes), until="nothing paid")
    steps = tuning.look().steps
    assert steps[0].path == "architecture.layers", "of the depth 'full' there is no theta"
    now = replace(tuning.look(), stage="tuning", steps=steps[:1])
    assert TuningSnapshot(tuning.plan, now, "tuning").progress.endswith("now depth.kind")


def test_its_stages_are_driven_by_it_while_it_lives(planned: Planned) -> None:
    tuning, starter = begin(*planned()), Trained()
    assert tuning.sweep.status == "starting"
    tuning.advance(starter, RATES)
    assert tuning.sweep.status == "sweeping"
    # Somebody else's driver is left alone, and its sweep is read.
    other = begin(*planned(name="other"))
    with other.sweep.folder.driver_lock():
        other.advance(starter, RATES)
        assert other.sweep.points == []
