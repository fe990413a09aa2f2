"""The facts of one run, as numbers and as text."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from workbench.client.run import Run
from workbench.client.run_list import RunList
from workbench.client.summary import describe, experiment_name, experiment_of, launched_of, owner_of, summary
from workbench.experiments.open import KINDS
from workbench.store.folder import RunFolder, write_json
from workbench.store.labels import label, name_of
from workbench.store.state import write_state
from workbench.telemetry.scored_text import PART_SCORE


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "run-a")
    folder.path.mkdir()
    write_json(folder.recipe, {"name": "a run"})
    return folder


def test_numbers_and_text_say_the_same(folder: RunFolder) -> None:
    write_state(folder, status="finished", progress=0.5, step=12345, loss=2.34567, tokens_per_second=9876.5)
    said = summary(folder)
    assert (said["name"], said["status"], said["step"], said["loss"]) == ("a run", "finished", 12345, 2.34567)
    assert describe(folder) == {
        "run": "run-a",
        "name": "a run",
        "status": "finished",
        "progress": "50%",
        "step": "12,345",
        "loss": "2.346",
        "held-out": "",
        "tokens/s": "9,876",
        "tags": "",
        "forked from": "",
        "queue": "",
        "why": "",
    }


@pytest.mark.parametrize(("status", "shown"), [("stopped", "~5.433"), ("finished", "5.433")])
def test_a_score_of_a_part_of_the_held_out_text_is_marked(folder: RunFolder, status: str, shown: str) -> None:
    write_state(folder, status=status, heldout_loss=5.4326)
    assert (summary(folder)["heldout_loss"], describe(folder)["held-out"]) == (5.4326, shown)
    page = RunList([Run(folder)], folder.path.parent)._repr_html_()
    assert (PART_SCORE in page) == (status == "stopped")


def test_a_failed_run_says_why(folder: RunFolder) -> None:
    write_state(folder, status="failed", message="training", error="the disk is full")
    assert summary(folder)["message"] == "the disk is full"


def test_a_run_that_should_be_alive_and_is_not_is_lost(folder: RunFolder) -> None:
    write_state(folder, status="running")
    assert (summary(folder)["status"], describe(folder)["status"]) == ("lost", "lost")


@pytest.mark.parametrize("recipe", ['{"name": 7}', '{"name": ""}', "[]", "{not json"])
def test_without_a_readable_name_the_id_stands(folder: RunFolder, recipe: str) -> None:
    folder.recipe.write_text(recipe)
    assert name_of(folder) == "run-a"


def test_labels_and_parent_are_said(folder: RunFolder) -> None:
    write_state(folder, status="finished")
    assert (summary(folder)["tags"], summary(folder)["notes"], summary(folder)["parent"]) == ([], "", None)
    label(folder, add=["base", "good"], notes="as <b>hoped</b>")
    write_json(folder.origin, {"run": "run-0", "step": 1200})
    said, shown = summary(folder), describe(folder)
    assert (said["tags"], said["notes"]) == (["base", "good"], "as <b>hoped</b>")
    assert said["parent"] == {"run": "run-0", "step": 1200}
    assert (shown["tags"], shown["forked from"]) == ("base good", "run-0 at 1,200")


def test_owner_and_start_are_said(folder: RunFolder) -> None:
    write_state(folder, status="finished", device="H200", host="node1")
    said = summary(folder)
    assert said["owner"] == pwd.getpwuid(os.getuid()).pw_name
    assert (said["device"], said["host"]) == ("H200", "node1")
    assert said["launched"] == os.stat(folder.recipe).st_mtime, "an id without a time"
    stamped = folder.path.rename(folder.path.parent / "20260102-030405-a-000000-0000")
    assert summary(RunFolder(stamped))["launched"] == 1767323045
    assert summary(RunFolder(stamped))["started"] is None, "it may have waited for hours"
    write_state(RunFolder(stamped), step=7)
    assert summary(RunFolder(stamped))["started"] == 1767323045, "of an earlier version"
    write_state(RunFolder(stamped), started=1767333333.0)
    assert summary(RunFolder(stamped))["started"] == 1767333333
    write_json(RunFolder(stamped).origin, {"run": "run-0", "step": 7})
    write_state(RunFolder(stamped), status="queued", started=0.0)
    assert summary(RunFolder(stamped))["started"] is None, "a fork that waits stands at a step that its parent took"
    made_up = RunFolder(stamped.rename(folder.path.parent / "99999999-999999-a"))
    assert launched_of(made_up) is None
    assert launched_of(RunFolder(folder.path.parent / "gone")) is None
    assert owner_of(RunFolder(folder.path.parent / "gone")) == ""
    write_json(made_up.launched, {"on": "local", "settings": {"WORKBENCH_OWNER": "anna"}})
    assert owner_of(made_up) == "anna", "as the queue calls it"


@pytest.mark.parametrize("noun", KINDS)
def test_an_experiment_of_each_kind_is_found_by_the_tag_of_its_runs(noun: str) -> None:
    tag = KINDS[noun].kind.tag_of("deep or wide")
    name = experiment_of("20260131-081500-mine-s0-0a1b2c", ["good", tag])
    assert name == experiment_name(tag, "20260131-081500-0a1b2c") == f"{noun}:deep-or-wide 20260131-081500"


def test_other_tags_are_no_experiment() -> None:
    assert experiment_of("20260131-081500-a", ["race", "racecar:x", "my race:x"]) == ""
