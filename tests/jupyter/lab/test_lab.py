"""The Lab launches, forks and opens runs for real."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jupyter.lab.conftest import wait_for
from tests.jupyter.live import run_folder, until
from tests.jupyter.messages import say
from workbench import presets
from workbench.client.run import Run
from workbench.jupyter.lab.lab import Lab
from workbench.jupyter.runs.run_actions import ActionResult


def asked_before_a_second_run_of_the_same(lab: Lab) -> None:
    """Once, and not any more when the recipe is another."""
    lab.launch_button.click()
    assert (lab.launch_button.description, len(lab.table.rows)) == ("Launch again", 1)
    say(lab.frame, {"do": "launch", "again": True})
    assert "Press again for a second run" in lab.composer.verdict.value, "a double click is no answer"
    assert len(lab.table.rows) == 1
    lab.composer.run.knobs["seed"].input.source.value = "7"
    assert lab.launch_button.description == "Launch"
    lab.composer.undo()
    say(lab.frame, {"do": "launch"})
    assert (lab.launch_button.description, len(lab.table.rows)) == ("Launch again", 1), "it asks anew"


def asked_before_a_doubted_run(lab: Lab) -> None:
    """Once for each recipe; the ways out stand before what speaks against it."""
    composer, long = lab.composer, "would take 1,157 days on this machine"
    composer.run.knobs["notes"].input.source.value = "long"
    for _ in range(2):
        assert composer.recipe is not None
        lab.forecast._judged(composer.recipe.hash, long)
        assert composer.verdict.value.index("reset all") < composer.verdict.value.index(long)
        composer.verdict.say("something else")
        lab.launch_button.click()
        assert (lab.launch_button.description, lab.table.rows) == ("Launch anyway", [])
        assert composer.verdict.value.index("reset all") < composer.verdict.value.index(f"launch anyway: {long}")
        composer.run.knobs["seed"].input.source.value = "7"
        assert lab.launch_button.description == "Launch"
        composer.undo()
    lab.launch_button.click()
    assert lab.table.rows == [], "it asks anew"


@pytest.mark.process
def test_launch_watch_fork_and_stop(lab: Lab, tmp_path: Path) -> None:
    asked_before_a_doubted_run(lab)
    say(lab.frame, {"do": "launch"})
    assert "press again" not in lab.composer.verdict.value, "it is answered"
    say(lab.frame, {"do": "launch", "again": True})
    assert "launched once" in lab.composer.verdict.value
    assert len(lab.table.rows) == 1, "a double click is one launch"
    (first,) = lab.table.selected
    # The handler starts a process; it must not wait for that process's imports.
    assert Run(first, tmp_path / "runs").status == "starting"
    assert [run.id for run in lab.monitor.runs] == [first]
    run = Run(first, tmp_path / "runs")
    assert run.recipe == lab.composer.recipe
    lab.forecast._judged(run.recipe.hash, "")
    asked_before_a_second_run_of_the_same(lab)
    wait_for(lab, first, "running")
    run.checkpoint(timeout=60)

    lab.fork(first)
    point = lab.forking.point
    assert point is not None
    assert lab.launch_button.description == f"Fork from step {point.step:,}"
    assert "Fork of" in lab.forking.bar.text.value
    assert not lab.launch_button.disabled
    lab.composer.load(point.recipe.with_(architecture={"layers": 3}), point.recipe)
    assert lab.launch_button.disabled
    assert "cannot change architecture.layers" in lab.composer.verdict.value
    layers = lab.composer.axes["architecture"].part.knobs["layers"]
    assert "a fork cannot change it" in layers._note._line.value
    lab.composer.load(point.recipe.with_(optimizer={"lr": 1e-4}), point.recipe)
    assert not lab.launch_button.disabled
    lab.launch_button.click()
    until(lambda: lab.table.selected not in ([], [first]), seconds=60)
    assert lab.forking.point is None
    assert lab.launch_button.description == "Launch"
    (forked,) = lab.table.selected
    assert lab.table.watched == [first, forked], "beside what is watched"
    child = Run(forked, tmp_path / "runs")
    assert child.origin is not None
    assert (child.origin.run, child.origin.step) == (first, point.step)
    assert child.recipe.optimizer.lr == 1e-4
    assert [run.id for run in lab.monitor.runs] == [first, forked], "beside what was watched"
    for one in (first, forked):
        wait_for(lab, one, "running")


def test_another_checkpoint_keeps_the_edits(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run_folder(tmp_path / "runs" / "20260101-000000-a-000000-0000", "finished", False)
    recipe = lab.composer.recipe
    assert recipe is not None
    recipe.save(folder.recipe)
    for step, lr in ((10, 0.25), (20, 0.5)):
        (folder.checkpoints / f"step-{step}").mkdir(parents=True)
        state = f'{{"step": {step}, "tokens": 1, "seconds": 1.0, "overrides": {{"optimizer.lr": {lr}}}}}'
        (folder.checkpoints / f"step-{step}" / "state.json").write_text(state)
    lab.fork(folder.id)
    assert [label for label, _ in lab.forking.bar.steps.options] == ["from step 20 (newest)", "from step 10"]
    assert lab.composer.recipe is not None
    assert lab.composer.recipe.optimizer.lr == 0.5
    assert lab.composer.composition.state.began == "run a", "what marks and differences refer to has a name"
    assert lab.composer.page.resting == f"recipe of run {folder.id}"
    lab.composer.load(lab.composer.recipe.with_(seed=9), lab.composer.recipe)
    lab.forking.bar.steps.value = 10
    assert lab.forking.point is not None
    assert lab.forking.point.step == 10
    assert (lab.composer.recipe.seed, lab.composer.recipe.optimizer.lr) == (9, 0.25)
    assert lab.composer.composition.state.began == "run a"
    # A tab that is opened again composes what it kept before a page shows it.
    again, asked = Lab(runs_dir=tmp_path / "runs"), []
    again.restore(lab.kept)
    monkeypatch.setattr(again.forecast, "show", asked.append)
    again._repr_mimebundle_()
    assert (lab.composer.recipe.budget.amount, asked[-1].budget.amount) == (100000, 99990), "what the fork has left"
    again.close()
    assert lab.forking.bar.budget.value.endswith("are left</span>")
    lab.composer.load(lab.composer.recipe.with_(budget="600 steps"), lab.composer.recipe)
    assert ">590 of 600 steps are left (budget " in lab.forking.bar.budget.value
    lab.composer.load(lab.composer.recipe.with_(budget="1.02 s"), lab.composer.recipe)
    assert ">0.02 of 1.02 seconds are left (budget " in lab.forking.bar.budget.value
    assert "and a step takes 0.1" in lab.composer.verdict.value
    assert lab.launch_button.disabled
    # Its checkpoint turns out to be damaged: refused, it is still a fork, not a run that would begin at step 0.
    lab.composer.load(lab.composer.recipe.with_(budget="600 steps"), lab.composer.recipe)
    answers: list[ActionResult] = []
    monkeypatch.setattr(lab.table, "say", answers.append)
    lab.launch_button.click()
    assert lab.launch_button.disabled or len(answers) > 1, "not twice"
    until(lambda: not lab.launch_button.disabled and len(answers) > 1)
    assert "cannot be forked from step-10: " in answers[-1].text, answers
    assert answers[-1].text.endswith("its other checkpoints are 20")
    assert lab.launch_button.description == "Fork from step 10"
    lab.forking.bar.steps.value = 20
    lab.composer.load(lab.composer.recipe.with_(budget="21 steps"), lab.composer.recipe)
    assert "raise the budget" in lab.composer.verdict.value
    lab.composer.say("90 seconds are spent already", bad=True)
    told: list[str] = []
    monkeypatch.setattr(lab.table, "say", lambda result, request=0: told.append(result.text))
    lab.forking.bar.back.click()
    assert told == ["no fork any more: the recipe as it stands will begin at step 0"]
    assert "spent already" not in lab.composer.verdict.value
    assert lab.forking.point is None
    assert lab.forking.bar.children == ()
    assert lab.composer.recipe.seed == 9


def test_the_recipe_of_a_run_is_opened_to_be_launched_anew(lab: Lab, tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "runs" / "20260101-000000-a-000000-0000", "failed", False)
    assert lab.composer.recipe is not None
    failed = lab.composer.recipe.with_(seed=77)
    failed.save(folder.recipe)
    lab.watch([Run(folder)])
    lab.edit(folder.id)
    assert lab.composer.recipe == failed
    lab.composer.enter(failed.with_(seed=78).to_dict())
    lab.edit(folder.id)
    assert lab.composer.recipe == failed, "the forms began with it already, and were changed since"
    lab.edit("gone")
    assert "gone" in lab.composer.verdict.value


def test_a_run_that_failed_for_want_of_its_text_says_so_at_its_knob(lab: Lab, tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "runs" / "20260101-000000-a-000000-0000", "failed", False)
    assert lab.composer.recipe is not None
    lab.composer.recipe.with_(data={"kind": "files", "paths": [str(tmp_path / "nowhere")]}).save(folder.recipe)
    lab.edit(folder.id)
    assert lab.launch_button.disabled
    assert "data.paths: no such file or folder" in lab.composer.verdict.value
    paths = lab.composer.axes["data"].part.knobs["paths"]
    assert "no such file or folder" in paths.widget.children[-1].value


@pytest.mark.process
def test_the_example_is_a_run_that_is_not_compiled_and_leaves_what_is_composed(
    lab: Lab, tmp_path: Path, learnable: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    example = presets.get(presets.EXAMPLE)
    # Its first point is what a newcomer waits for: a compilation takes minutes where the machine is busy.
    assert not example.to_dict()["execution"]["compile"]
    quick = example.with_assignments([*learnable, "budget.amount=100000"])
    monkeypatch.setattr(presets, "get", lambda name: {presets.EXAMPLE: quick}[name])
    lab.composer.axes["architecture"].part.knobs["heads"].input.source.value = "2"
    lab.monitor._handle_custom_msg({"type": "example"}, [])
    assert lab.composer.recipe is not None
    assert lab.composer.recipe.architecture.heads == 2, "what was composed stays"
    assert len(lab.table.selected) == 1, lab.composer.verdict.value
    assert Run(lab.table.selected[0], tmp_path / "runs").recipe == quick
    assert [run.id for run in lab.monitor.runs] == lab.table.selected
    wait_for(lab, lab.table.selected[0], "running")
    for asked in ({}, {"do": "dance"}, None, {"do": "restore"}):
        say(lab.frame, asked)
