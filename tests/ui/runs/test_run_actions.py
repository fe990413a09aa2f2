"""What the page may ask of runs: done, refused with the reason, and told in one sentence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.ui.live import run_folder
from workbench.errors import RunError
from workbench.runs import control, lease
from workbench.runs.folder import RunFolder, write_json
from workbench.runs.labels import read_labels
from workbench.runs.run import Run
from workbench.runs.trash import trashed
from workbench.ui.runs import run_actions
from workbench.ui.runs.run_actions import ActionResult, RunActions


@pytest.fixture
def actions(tmp_path: Path) -> RunActions:
    return RunActions(tmp_path, lambda: {"name": "left", "seed": 7})


def run(root: Path, name: str, status: str = "finished", **recipe: Any) -> RunFolder:
    return run_folder(root / f"20260101-000000-{name}-000000-0000", status, status == "running", name=name, **recipe)


def perform(actions: RunActions, verb: str, *folders: RunFolder, **rest: Any) -> list[ActionResult]:
    return list(actions.perform(verb, [folder.id for folder in folders], rest))


def test_a_request_is_told_when_it_is_sent_and_when_it_is_answered(actions: RunActions, tmp_path: Path) -> None:
    folder = run(tmp_path, "a", "running")
    said = actions.perform("checkpoint", [folder.id], {})
    assert next(said).text == "checkpoint: asked a"
    (request,) = control.pending(folder)
    control.answer(folder, request.id, True, "saved step-5")
    assert next(said) == ActionResult("a: saved step-5")
    said = actions.perform("evaluate", [folder.id], {})
    next(said)
    control.answer(folder, control.pending(folder)[0].id, False, "no held-out text")
    assert next(said) == ActionResult("a refused 'evaluate': no held-out text", error=True)


@pytest.mark.parametrize("verb", ["evaluate", "checkpoint"])
def test_what_the_run_is_still_doing_is_not_refused(
    actions: RunActions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr(run_actions, "_ANSWER_SECONDS", 0.1)
    folder = run(tmp_path, "a", "running")
    said = actions.perform(verb, [folder.id], {})
    next(said)
    control.answer(folder, control.pending(folder)[0].id, None, "at work on it")
    assert next(said) == ActionResult("a: at work on it; the request stands")


def test_a_request_without_an_answer_stands(
    actions: RunActions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_actions, "_ANSWER_SECONDS", 0.1)
    folder = run(tmp_path, "a", "running")
    assert "no answer to 'pause' yet" in perform(actions, "pause", folder)[-1].text
    assert [request.verb for request in control.pending(folder)] == ["pause"]


def test_one_that_refuses_does_not_keep_the_others_from_being_asked(
    actions: RunActions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_actions, "_ANSWER_SECONDS", 0.0)
    gone, going = run(tmp_path, "a"), run(tmp_path, "b", "running")
    first = perform(actions, "stop", gone, going)[0]
    assert first.error
    assert "cannot stop: it is finished" in first.text
    assert "stop: asked b" in first.text


def test_a_run_that_somebody_else_steers_can_be_taken_over(
    actions: RunActions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_actions, "_ANSWER_SECONDS", 0.0)
    folder = run(tmp_path, "a", "running")
    lease.claim(folder, "other", "Eve")
    (said,) = perform(actions, "stop", folder)
    assert "Eve" in said.text
    assert said.message()["take_over"] == {"verb": "stop", "runs": [folder.id]}
    assert control.pending(folder) == []
    assert "asked a" in perform(actions, "stop", folder, take_over=True)[0].text
    assert not lease.read_lease(folder).held()


def test_whoever_steers_from_this_page_is_nobody_else(
    actions: RunActions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_actions, "_ANSWER_SECONDS", 0.0)
    folder = run(tmp_path, "a", "running")
    lease.claim(folder, "page", "Eve")
    assert "asked a" in perform(actions, "pause", folder, controller="page")[0].text
    assert lease.read_lease(folder).controller == "page"
    assert perform(actions, "pause", folder, controller="another page")[0].take_over


def test_tags_and_notes(actions: RunActions, tmp_path: Path) -> None:
    one, two = run(tmp_path, "a"), run(tmp_path, "b")
    assert perform(actions, "label", one, two, add=["x", "y"])[0].text == "tags of a, b changed"
    perform(actions, "label", one, remove=["x"], notes="as hoped")
    assert (read_labels(one).tags, read_labels(one).notes) == (("y",), "as hoped")
    with pytest.raises(RunError, match="is not a tag"):
        perform(actions, "label", one, add=["two words"])


def test_deleted_runs_come_back_and_living_ones_stay(actions: RunActions, tmp_path: Path) -> None:
    gone, going = run(tmp_path, "a"), run(tmp_path, "b", "running")
    (said,) = perform(actions, "delete", gone, going)
    assert said.text.startswith("moved a to the trash; run ")
    assert said.error
    assert said.message()["undo"] == [gone.id]
    assert [folder.id for folder in trashed(tmp_path)] == [gone.id]
    (said,) = perform(actions, "restore", gone)
    assert (said.text, said.error) == ("brought back a", False)
    assert Run(gone.id, tmp_path).status == "finished"
    assert perform(actions, "restore", gone)[0].error
    perform(actions, "delete", gone)
    assert perform(actions, "empty")[0].text == "removed 1 deleted run for good"
    assert not gone.path.exists()


def test_compare_and_diff(actions: RunActions, tmp_path: Path) -> None:
    one, two = run(tmp_path, "a", seed=1), run(tmp_path, "b", seed=2)
    (said,) = perform(actions, "compare", one, two)
    assert said.sheet is not None
    assert said.sheet["knobs"] == [{"path": "seed", "values": [1, 2]}]
    (said,) = perform(actions, "diff", one)
    assert said.sheet is not None
    assert [column["name"] for column in said.sheet["runs"]] == ["a", "the recipe on the left"]
    assert said.sheet["knobs"] == [{"path": "seed", "values": [1, 7]}]
    with pytest.raises(RunError, match="cannot run as it is"):
        perform(RunActions(tmp_path), "diff", one)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.process
def test_a_report_is_a_page(actions: RunActions, tmp_path: Path, count: int) -> None:
    folders = [run(tmp_path, name) for name in "ab"[:count]]
    for folder in folders:
        write_json(folder.evaluations, {"unigram_entropy": 3.0, "heldout": [], "result": None})
    *_, said = perform(actions, "report", *folders)
    assert said.page is not None
    assert said.page.startswith(b"<!DOCTYPE html>")
    assert said.sheet is not None
    assert bool(said.sheet["path"]) == (count == 1) == folders[0].report.exists()


@pytest.mark.process
def test_an_export_without_a_checkpoint_or_a_name_is_refused(actions: RunActions, tmp_path: Path) -> None:
    folder = run(tmp_path, "a")
    with pytest.raises(RunError, match="name a new folder"):
        perform(actions, "export", folder, target=" ")
    with pytest.raises(RunError, match="checkpoint"):
        perform(actions, "export", folder, target=str(tmp_path / "model"))


def test_a_page_can_ask_for_nothing_else(actions: RunActions, tmp_path: Path) -> None:
    folder = run(tmp_path, "a")
    for verb in ("fork", "set", "__init__", "perform"):
        with pytest.raises(RunError, match="is none of"):
            perform(actions, verb, folder)
    with pytest.raises(RunError, match="not of the form"):
        list(actions.perform("delete", [f"..{os.sep}x"], {}))
    with pytest.raises(RunError, match="no run is selected"):
        perform(actions, "delete")
