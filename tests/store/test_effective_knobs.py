"""The knobs of a run after somebody steered it: what is in force, since which step, and what it is compared with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from workbench.client.comparison import compare
from workbench.jupyter.comparison import compare as compared
from workbench.jupyter.runs.run_actions import RunActions
from workbench.plots.report import report_html
from workbench.recipes.changes import settable, turned
from workbench.recipes.recipe import Recipe
from workbench.store.control import write_knobs
from workbench.store.effective_knobs import effective_knobs, turns_until
from workbench.store.folder import RunFolder
from workbench.store.view import RunView
from workbench.telemetry.streams import TelemetryReader, TelemetryWriter

LR = "optimizer.lr"


def steer(folder: RunFolder, recipe: Recipe, *turns: tuple[int, str, Any]) -> None:
    """As the trainer writes it down."""
    writer = TelemetryWriter(folder.telemetry)
    for step, path, value in turns:
        recipe = turned(recipe, path, value)
        writer.event(step, "knob", f"{path} set to {value}", path=path, value=value)
    writer.close()
    write_knobs(folder, settable(recipe))


@pytest.fixture
def launch(tmp_path: Path) -> Any:
    def make(name: str, lr: float, *turns: tuple[int, str, Any]) -> RunFolder:
        folder = RunFolder(tmp_path / name)
        folder.path.mkdir()
        recipe = Recipe().with_(**{"name": name, LR: lr})
        recipe.save(folder.recipe)
        steer(folder, recipe, *turns)
        return folder

    return make


def test_the_value_in_force_stands_where_the_launched_one_did(launch: Any) -> None:
    found = effective_knobs(launch("steered", 0.001, (100, LR, 0.003), (214, LR, 0.002), (300, LR, 0.002)))
    assert found.values[LR] == 0.002
    assert list(found.steered) == [LR]
    assert found.steered[LR] == (0.001, 0.002, 214)
    assert found.told[LR] == "0.001 → 0.002 at step 214"


def test_a_knob_that_was_off_may_be_steered_too(tmp_path: Path) -> None:
    folder, clip = RunFolder(tmp_path), "optimizer.clip_norm"
    recipe = Recipe().with_(**{clip: None})
    recipe.save(folder.recipe)
    steer(folder, recipe, (7, clip, 0.5))
    assert effective_knobs(folder).steered[clip] == (None, 0.5, 7)
    assert effective_knobs(folder).told[clip] == "none → 0.5 at step 7"


def test_a_run_that_nobody_steered_has_its_recipe(launch: Any) -> None:
    found = effective_knobs(launch("plain", 0.001))
    assert found.steered == {}
    assert found.told == found.values
    assert found.values[LR] == 0.001
    back = effective_knobs(launch("back", 0.001, (5, LR, 0.002), (9, LR, 0.001)))
    assert back.steered == {}


def test_what_was_set_until_a_checkpoint(launch: Any) -> None:
    folder = launch("steered", 0.001, (100, LR, 0.003), (214, LR, 0.002), (300, LR, 0.001), (400, LR, 0.5))
    told = [str(turn) for turn in turns_until(folder, 300, {LR: 0.001})]
    # The value of the recipe once more, and yet the recipe does not train it again.
    between = ("0.001 → 0.003 at step 100", "0.003 → 0.002 at step 214", "0.002 → 0.001 at step 300")
    assert told == [f"{LR} {each}" for each in between]
    # Resumed at 200, the run was not steered at 214; and whatever its checkpoint does not hold was undone.
    writer = TelemetryWriter(folder.telemetry)
    writer.event(200, "start", "training")
    writer.close()
    assert [turn.step for turn in turns_until(folder, 500, {LR: 0.003})] == [100]
    assert turns_until(folder, 500, {}) == []
    # Resumed from the very step of a change, its checkpoint was saved before the change or after it.
    for kept, steps in ((True, [100]), (False, [])):
        writer = TelemetryWriter(folder.telemetry)
        writer.event(100, "start", "training", turned=kept)
        writer.close()
        assert [turn.step for turn in turns_until(folder, 500)] == steps


def test_a_schedule_that_took_the_place_of_another(launch: Any) -> None:
    found = effective_knobs(launch("schedule", 0.001, (7, "optimizer.schedule", {"kind": "inverse_sqrt"})))
    before, after, step = found.steered["optimizer.schedule.kind"]
    assert (before != after, after, step) == (True, "inverse_sqrt", 7)
    fresh = Recipe().with_(**{"optimizer.schedule": {"kind": "inverse_sqrt"}}).to_dict()["optimizer"]["schedule"]
    schedule = {path for path in found.values if path.startswith("optimizer.schedule.")}
    assert schedule == {f"optimizer.schedule.{name}" for name in fresh}, "none of the old one's knobs"


def test_a_report_tells_it_in_its_head_and_beside_the_others(launch: Any) -> None:
    folders = launch("steered", 0.001, (214, LR, 0.002)), launch("always", 0.002)
    page = report_html([RunView.read(folder) for folder in folders])
    assert page.count("0.001 → 0.002 at step 214") == 3, "in words, among what differs, among every knob"
    assert f"steered was steered: {LR} 0.001 → 0.002 at step 214." in page


def test_the_report_of_one_run_has_both_values_in_its_recipe(launch: Any) -> None:
    told = "0.001 → 0.002 at step 214"
    folder = launch("steered", 0.001, (9, "optimizer.schedule", {"kind": "inverse_sqrt"}), (214, LR, 0.002))
    page = report_html([RunView.read(folder)])
    assert f">adamw</td><td>lr {told}, " in page, "in the row of its axis"
    assert page.count(told) == 3, "in words, in the row of its axis, among every knob"
    turned_to = Recipe().with_(**{"optimizer.schedule": {"kind": "inverse_sqrt"}})
    was, now = (recipe.to_dict()["optimizer"]["schedule"] for recipe in (Recipe(), turned_to))
    assert f"schedule.kind {was['kind']} → inverse_sqrt at step 9" in page
    gone = was.keys() - now.keys()
    assert gone, "a schedule that has other knobs"
    assert not [name for name in gone if f"schedule.{name}" in page or f"schedule.{name.replace('_', ' ')}" in page]
    assert f"lr {told}, " in compared(folder)._knobs_html()


def test_events_that_are_at_hand_are_not_read_again(launch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = launch("steered", 0.001, (214, LR, 0.002))
    monkeypatch.setattr("workbench.store.effective_knobs.read_events", lambda folder: pytest.fail("read again"))
    for reader in (None, TelemetryReader(folder.telemetry)):
        assert RunView.read(folder, reader).knobs.steered[LR].step == 214


def test_a_comparison_tells_who_was_steered_when(launch: Any) -> None:
    steered, always, never = launch("steered", 0.001, (214, LR, 0.002)), launch("always", 0.002), launch("never", 0.001)
    found = compare([steered, always, never])
    told = ["0.001 → 0.002 at step 214", 0.002, 0.001]
    assert {"path": LR, "values": told} in found["knobs"]
    assert f"steered was steered: {LR} 0.001 → 0.002 at step 214." in found["notes"]
    assert "Same recipe: differences are noise." not in compare([steered, always])["notes"]
    assert compared(steered, always, never).knobs[LR] == told
    root = steered.path.parent
    (said,) = RunActions(root).perform("diff", [steered.id, always.id], {})
    assert said.sheet is not None
    assert {"path": LR, "values": told[:2]} in said.sheet["knobs"]
