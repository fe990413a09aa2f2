"""Beside Launch: whether what is composed can run, what speaks against it, and what text that is not applied means."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.jupyter.messages import say
from workbench import presets
from workbench.base.fields import put
from workbench.choices.execution.environment import EngineEnvironment
from workbench.jupyter.feed.latest import Latest
from workbench.jupyter.lab.lab import Lab
from workbench.recipes.recipe import Recipe


def test_the_verdict_beside_launch_is_the_forecast_s_too(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab.forecast._ahead, "ask", lambda _recipe: None)
    composer = lab.composer
    assert composer.recipe is not None
    lab._repr_mimebundle_()
    assert ">Ready. Forecast follows.<" in composer.verdict.value, "of the first one, too"
    lab.forecast._judged(composer.recipe.hash, "does not fit: it needs 9 GiB, the device has 8 GiB")
    assert "does not fit" in composer.verdict.value
    assert "ready" not in composer.verdict.value
    # Of the next one nobody knows yet.
    composer.enter(put(composer.fields, "seed", 7))
    assert ">Ready. Forecast follows.<" in composer.verdict.value
    assert not lab.launch_button.disabled
    lab.forecast._judged(composer.recipe.hash, "")
    assert ">ready<" in composer.verdict.value


def test_an_invalid_recipe_cannot_be_launched_and_the_reason_stands_beside_the_button(lab: Lab) -> None:
    lab.composer.axes["architecture"].part.knobs["heads"].input.source.value = "3"
    assert lab.launch_button.disabled
    assert "3 heads do not divide" in lab.launch_button.tooltip
    assert "3 heads do not divide" in lab.composer.verdict.value
    lab.composer.axes["architecture"].part.knobs["heads"].input.source.value = "2"
    assert not lab.launch_button.disabled
    assert "lab-good" in lab.composer.verdict.value
    lab.composer.load(lab.composer.recipe.with_(execution={"threads": 1000}))
    assert lab.launch_button.disabled
    assert "cannot run" in lab.composer.verdict.value
    assert "execution.threads" in lab.composer.verdict.value
    assert (
        "1,000 threads, and this machine has" in lab.composer.axes["execution"].part.knobs["threads"]._note._line.value
    )
    lab.composer.undo()
    assert not lab.launch_button.disabled
    assert lab.table.rows == []


def test_an_engine_that_is_not_installed_is_an_objection_with_the_way_out(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EngineEnvironment, "folder", tmp_path / "nothing")
    recipe = lab.composer.recipe.with_(execution={"kind": "onnxruntime", "device": "cpu"})
    lab.composer.load(recipe)
    assert lab.launch_button.disabled
    assert "cannot run" in lab.composer.verdict.value
    way_out = "is not installed; run `workbench engines install onnxruntime`"
    assert way_out in lab.composer.verdict.value
    assert way_out in lab.launch_button.tooltip
    assert way_out in lab.composer.axes["execution"]._note._line.value
    lab.composer.undo()
    assert not lab.launch_button.disabled


def test_text_that_is_not_applied_is_what_is_launched_or_the_reason_why_nothing_can_be(lab: Lab) -> None:
    composer = lab.composer
    started: list[tuple[str, int]] = []
    lab._start = lambda recipe: started.append((recipe.name, recipe.seed))  # type: ignore[method-assign]
    composer.show.value = "JSON"
    text = composer.json.text
    composer.json.draft = text.replace('"seed": 0', '"seed": -1')
    assert lab.launch_button.disabled
    assert lab.race_button.disabled
    assert "cannot run" in composer.verdict.value
    assert "seed: " in composer.verdict.value
    assert "seed: " in lab.launch_button.tooltip
    say(lab.frame, {"do": "launch"})
    composer.show.value = "Form"
    assert not lab.launch_button.disabled, "of a text that nobody sees nothing is launched"
    composer.show.value = "JSON"
    assert lab.launch_button.disabled
    composer.json.draft = text.replace('"seed": 0', '"seed": 22')
    assert not lab.launch_button.disabled
    assert not lab.race_button.disabled
    assert "lab-good" not in composer.verdict.value
    assert "Launch and Race apply it first: seed 0" in composer.verdict.value
    lab.launch_button.click()
    assert composer.recipe is not None
    assert started == [(composer.recipe.name, 22)]
    assert f"applied and launched {composer.recipe.name}" in composer.verdict.value
    said = composer.verdict.value
    composer.json.draft = None  # the page has heard that it was applied
    assert composer.verdict.value == said
    composer.json.draft = text.replace('"seed": 0', '"seed": 23')
    lab.race_button.click()
    assert composer.recipe.seed == 23


@pytest.mark.parametrize("view", ["Form", "JSON"])
def test_what_is_launched_at_once_is_asked_about_as_what_was_looked_at(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, view: str
) -> None:
    """A budget of years, by a knob or in a text, and Launch before its forecast is there."""
    started, long = [], "would take 1,157 days on this machine"
    monkeypatch.setattr(lab, "_start", lambda recipe: started.append(recipe.budget.amount))

    def forecast(recipe: Recipe) -> None:
        time.sleep(0.3)
        lab.forecast._judged(recipe.hash, long if recipe.budget.amount > 1e6 else "")

    monkeypatch.setattr(lab.forecast, "_ahead", Latest(forecast, "slow-forecast"))
    lab._displayed = True
    composer = lab.composer
    lab._composed()
    if view == "Form":
        composer.enter(put(composer.fields, "budget.amount", 1e9))
    else:
        composer.show.value = view
        editor = composer.json
        assert editor.text.count("100000.0") == 1
        editor.draft = editor.text.replace("100000.0", "1000000000.0")
    lab.launch_button.click()
    assert (started, lab.launch_button.description) == ([], "Launch anyway")
    assert f"press again to launch anyway: {long}" in composer.verdict.value
    lab.launch_button.click()
    assert started == [1e9]


def test_text_that_was_typed_as_launch_was_pressed_is_what_is_launched(lab: Lab) -> None:
    """The page's edit of it may come later than the press: a busy kernel takes edits one by one."""
    composer, started = lab.composer, []
    lab._start = lambda recipe: started.append(recipe.seed)  # type: ignore[method-assign]
    composer.show.value = "JSON"
    text = composer.json.text
    composer.json.draft = text.replace('"seed": 0', '"seed": 4')
    say(lab.frame, {"do": "launch", "again": False, "typed": text.replace('"seed": 0', '"seed": 41')})
    assert started == [41]
    # The edit that was held back changes nothing any more.
    composer.json.draft = text.replace('"seed": 0', '"seed": 41')
    assert composer.edited is None


def test_text_that_is_left_unapplied_in_another_view_is_not_forgotten(lab: Lab) -> None:
    composer = lab.composer
    composer.show.value = "JSON"
    composer.json.draft = composer.json.text.replace('"seed": 0', '"seed": 41')
    composer.show.value = "Difference"
    assert ">without the edits in JSON<" in composer.verdict.value
    assert "go there to apply or revert it" in composer.verdict.value
    assert not lab.launch_button.disabled
    composer.show.value = "JSON"
    assert "edited, not applied" in composer.verdict.value
    composer.json.draft = None
    composer.show.value = "Form"
    assert "without the edits" not in composer.verdict.value


def test_text_stands_in_for_knobs_that_cannot_run(lab: Lab) -> None:
    composer = lab.composer
    sound = composer.fields
    composer.enter(put(sound, "architecture.heads", 3))
    composer.show.value = "JSON"
    assert lab.launch_button.disabled
    composer.json.draft = composer.json.text.replace('"heads": 3', '"heads": 2')
    assert not lab.launch_button.disabled
    composer.json.draft = None
    assert lab.launch_button.disabled
    assert "3 heads do not divide" in composer.verdict.value


def test_an_error_of_a_handler_is_told_beside_the_button(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where the folder should be")
    lab = Lab(presets.get("fast"), runs_dir=tmp_path / "runs")
    lab.launch_button.click()
    assert "lab-bad" in lab.composer.verdict.value
    assert "cannot take a new run" in lab.composer.verdict.value
    lab.close()


def test_a_launch_by_key_does_nothing_while_the_recipe_cannot_run(lab: Lab) -> None:
    lab.composer.axes["architecture"].part.knobs["heads"].input.source.value = "3"
    for again in (False, True):
        say(lab.frame, {"do": "launch", "again": again})
    assert lab.table.rows == []
    assert "3 heads do not divide" in lab.composer.verdict.value
