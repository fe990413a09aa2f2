"""The Lab: the recipe is launched and forked for real, runs are watched, errors are told where they belong."""

from __future__ import annotations

import gc
import json
import re
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

import ipywidgets
import pytest

from tests.ui.live import run_folder, until
from tests.ui.messages import say
from workbench import presets
from workbench.fields import put
from workbench.runs.run import Run
from workbench.ui.lab.lab import WATCHED_AT_MOST, Lab
from workbench.ui.saved_output import VIEW


@pytest.fixture
def lab(tmp_path: Path, learnable: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    recipe = presets.get("fast").with_assignments([*learnable, "budget.amount=100000"])
    made = Lab(recipe, runs_dir=tmp_path / "runs")
    yield made
    for row in made.table.rows:
        run = Run(row["id"], tmp_path / "runs")
        if run.status in ("starting", "running", "paused"):
            run.stop()
            wait_for(made, run.id, "stopped")
    made.close()


def wait_for(lab: Lab, run_id: str, status: str, seconds: float = 60) -> None:
    """Until a row of the table has a status."""
    deadline = time.monotonic() + seconds
    while (found := {row["id"]: row["status"] for row in lab.table.rows}.get(run_id)) != status:
        assert time.monotonic() < deadline, f"{run_id} is {found}"
        time.sleep(0.05)
        lab.table.refresh()


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
    point = lab.fork_point
    assert point is not None
    assert lab.launch_button.description == f"Fork from step {point.step:,}"
    assert "Fork of" in lab.fork_bar.text.value
    assert not lab.launch_button.disabled
    lab.composer.load(point.recipe.with_(architecture={"layers": 3}), point.recipe)
    assert lab.launch_button.disabled
    assert "cannot change architecture.layers" in lab.composer.verdict.value
    lab.composer.load(point.recipe.with_(optimizer={"lr": 1e-4}), point.recipe)
    assert not lab.launch_button.disabled
    lab.launch_button.click()
    assert lab.fork_point is None
    assert lab.launch_button.description == "Launch"
    until(lambda: lab.table.selected not in ([], [first]), seconds=60)
    (forked,) = lab.table.selected
    assert lab.table.watched == [first, forked], "beside what is watched"
    child = Run(forked, tmp_path / "runs")
    assert child.origin is not None
    assert (child.origin.run, child.origin.step) == (first, point.step)
    assert child.recipe.optimizer.lr == 1e-4
    assert [run.id for run in lab.monitor.runs] == [first, forked], "beside what was watched"
    for one in (first, forked):
        wait_for(lab, one, "running")


def test_another_checkpoint_keeps_the_edits(lab: Lab, tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "runs" / "20260101-000000-a-000000-0000", "finished", False)
    recipe = lab.composer.recipe
    assert recipe is not None
    recipe.save(folder.recipe)
    for step, lr in ((10, 0.25), (20, 0.5)):
        (folder.checkpoints / f"step-{step}").mkdir(parents=True)
        state = f'{{"step": {step}, "tokens": 1, "seconds": 1.0, "overrides": {{"optimizer.lr": {lr}}}}}'
        (folder.checkpoints / f"step-{step}" / "state.json").write_text(state)
    lab.fork(folder.id)
    assert [label for label, _ in lab.fork_bar.steps.options] == ["step 20 (newest)", "step 10"]
    assert lab.composer.recipe is not None
    assert lab.composer.recipe.optimizer.lr == 0.5
    lab.composer.load(lab.composer.recipe.with_(seed=9), lab.composer.recipe)
    lab.fork_bar.steps.value = 10
    assert lab.fork_point is not None
    assert lab.fork_point.step == 10
    assert (lab.composer.recipe.seed, lab.composer.recipe.optimizer.lr) == (9, 0.25)
    assert lab.fork_bar.budget.value.endswith("are left")
    lab.composer.load(lab.composer.recipe.with_(budget="600 steps"), lab.composer.recipe)
    assert lab.fork_bar.budget.value.endswith("600 steps: 590 of 600 steps are left")
    lab.composer.load(lab.composer.recipe.with_(budget="1.02 s"), lab.composer.recipe)
    assert lab.fork_bar.budget.value.endswith("0.02 of 1.02 seconds are left")
    assert "and a step takes 0.1" in lab.composer.verdict.value
    assert lab.launch_button.disabled
    lab.composer.load(lab.composer.recipe.with_(budget="10.2 steps"), lab.composer.recipe)
    assert "raise the budget" in lab.composer.verdict.value
    lab.composer.say("90 seconds are spent already", bad=True)
    lab.fork_bar.back.click()
    assert "spent already" not in lab.composer.verdict.value
    assert lab.fork_point is None
    assert lab.fork_bar.children == ()
    assert lab.composer.recipe.seed == 9


def test_the_recipe_of_a_run_is_opened_to_be_launched_anew(lab: Lab, tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "runs" / "20260101-000000-a-000000-0000", "failed", False)
    assert lab.composer.recipe is not None
    failed = lab.composer.recipe.with_(seed=77)
    failed.save(folder.recipe)
    lab.watch([Run(folder)])
    lab.edit(folder.id)
    assert lab.composer.recipe == failed
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


def test_the_verdict_beside_launch_is_the_forecast_s_too(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab.forecast._ahead, "ask", lambda _recipe: None)
    composer = lab.composer
    assert composer.recipe is not None
    lab.forecast._judged(composer.recipe.hash, "does not fit: it needs 9 GiB, the device has 8 GiB")
    assert "does not fit" in composer.verdict.value
    assert "ready" not in composer.verdict.value
    # Of the next one nobody knows yet.
    composer.enter(put(composer.fields, "seed", 7))
    assert ">valid, forecast pending<" in composer.verdict.value
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
        "1000 threads, and this machine has" in lab.composer.axes["execution"].part.knobs["threads"]._note._line.value
    )
    lab.composer.undo()
    assert not lab.launch_button.disabled
    assert lab.table.rows == []


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


def test_runs_are_watched_in_one_view_as_many_as_can_be_told_apart(tmp_path: Path) -> None:
    folders = [run_folder(tmp_path / f"2026010{n}-000000-r-000000-0000", "finished", False) for n in range(1, 10)]
    ids = [folder.id for folder in reversed(folders)]
    lab = Lab(presets.get("fast"), runs_dir=tmp_path)
    view = lab.monitor
    assert (view.runs, view.example) == ([], True)
    lab.table.watched = ids[:2]
    assert [run.id for run in view.runs] == ids[:2]
    lab.table.watched = ids[1:3]
    assert view.places == {ids[1]: 1, ids[2]: 0}, "who stays keeps its colour"
    lab.table.watched = ids
    assert len(view.runs) == WATCHED_AT_MOST
    lab.table.watched = []
    assert view.runs == []
    assert lab.monitor is view
    assert view.comm is not None
    lab.close()


def test_what_the_watch_pane_adds_is_watched_as_all_others(tmp_path: Path) -> None:
    one, two = (run_folder(tmp_path / f"2026010{n}-000000-r-000000-0000", "finished", False) for n in (1, 2))
    lab = Lab(presets.get("fast"), runs_dir=tmp_path)
    lab.table.watched = [one.id]
    lab.monitor.add(two)
    assert lab.table.watched == [one.id, two.id]
    lab.table.watched = [two.id]
    assert [run.id for run in lab.monitor.runs] == [two.id]
    lab.close()


def test_a_closed_lab_leaves_no_widget_and_no_thread_behind(tmp_path: Path) -> None:
    run_folder(tmp_path / "20260101-000000-r-000000-0000", "finished", False)
    Lab(presets.get("fast"), runs_dir=tmp_path).close()
    before = len(ipywidgets.Widget.widgets)
    lab = Lab(presets.get("fast"), runs_dir=tmp_path)
    lab.table.watched = ["20260101-000000-r-000000-0000"]
    # Another choice makes forms that did not exist before.
    lab.composer.load(presets.get("pld"))
    trace = weakref.ref(lab)
    lab.close()
    assert len(ipywidgets.Widget.widgets) == before
    del lab

    def gone() -> bool:
        gc.collect()
        return trace() is None

    # A thread that reads the store lets go once it has read.
    until(gone)


def test_without_a_page_it_is_a_text_until_its_parts_are_asked_for(tmp_path: Path) -> None:
    run_folder(tmp_path / "20260101-000000-earlier-000000", name="<i>earlier")
    lab = Lab(presets.get("fast"), runs_dir=tmp_path, live=False)
    told = lab._repr_mimebundle_()
    assert set(told) == {"text/html", "text/plain"}
    assert "begins with the recipe fast." in told["text/plain"]
    assert "&lt;i&gt;earlier" in told["text/html"]
    assert lab.children == ()
    with pytest.raises(AttributeError, match="'compser'"):
        lab.compser  # noqa: B018
    assert lab.composer.recipe == presets.get("fast")
    assert len(lab.children) == 4
    lab.close()


def test_what_a_saved_notebook_holds_of_a_lab_and_its_parts(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "20260101-000000-earlier-000000", name="<i>earlier")
    lab = Lab(presets.get("fast"), runs_dir=tmp_path, live=True)
    try:
        html = lab._saved_html()
        assert "<strong>Recipe fast</strong>" in html
        assert "&lt;i&gt;earlier" in html
        assert "<img" not in html, "nothing is watched"
        assert not re.search("<script|<i>", html)
        lab.watch([Run(folder)])
        assert "what was learned" in lab._saved_html()
        texts = {
            lab: f"Lab(runs of {tmp_path}, watches 1)",
            lab.composer: "Composer(fast)",
            lab.table: f"RunsTable(1 runs of {tmp_path})",
            lab.monitor: "Monitor(<i>earlier: running)",
        }
        for widget, text in texts.items():
            assert repr(widget) == text
            if widget is not lab.monitor:
                found = widget._repr_mimebundle_()
                bundle = found[0] if isinstance(found, tuple) else found
                assert bundle[VIEW]["model_id"] == widget.model_id
                assert bundle["text/plain"].startswith(text)
                assert "<script" not in bundle["text/html"]
        type_wrong(lab)
        assert repr(lab.composer) == "Composer(1 problems)"
        assert "cannot run as it is" in lab._saved_html()
    finally:
        lab.close()


def type_wrong(lab: Lab) -> None:
    lab.composer.enter({**lab.composer.fields, "seed": -1})


def test_the_page_keeps_what_another_kernel_goes_on_with(tmp_path: Path) -> None:
    run_folder(tmp_path / "20260101-000000-a-000000-0000", "finished", False)
    lab = Lab(runs_dir=tmp_path)
    lab.composer.axes["optimizer"].part.knobs["lr"].input.source.value = "0.004"
    lab.composer.axes["architecture"].part.knobs["heads"].input.source.value = "3"
    lab.table.watched = ["20260101-000000-a-000000-0000"]
    kept = json.loads(json.dumps(lab.frame.kept))
    lab.close()
    other = Lab(presets.get("pld"), runs_dir=tmp_path)
    say(other.frame, {"do": "restore", **kept})
    assert other.composer.recipe == presets.get("pld"), "its cell gives a recipe of its own"
    other.close()
    lab = Lab(runs_dir=tmp_path)
    say(lab.frame, {"do": "restore", **kept})
    assert lab.composer.fields["optimizer"]["lr"] == 0.004
    assert lab.composer.fields["architecture"]["heads"] == 3
    assert lab.table.watched == ["20260101-000000-a-000000-0000"]
    assert "as it was when the kernel ended" in lab.composer.verdict.value
    lab.close()


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


def test_a_launch_by_key_does_nothing_while_the_recipe_cannot_run(lab: Lab) -> None:
    lab.composer.axes["architecture"].part.knobs["heads"].input.source.value = "3"
    for again in (False, True):
        say(lab.frame, {"do": "launch", "again": again})
    assert lab.table.rows == []
    assert "3 heads do not divide" in lab.composer.verdict.value
