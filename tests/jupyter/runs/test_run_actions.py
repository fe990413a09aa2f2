"""What the page may ask of runs: done, refused with the reason, and told in one sentence."""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.jupyter.live import run_folder
from tests.tiny_runs import tiny_recipe
from workbench.base.errors import DataError, RunError
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.experiments.experiment_folder import FinetuningFolder
from workbench.experiments.finetune.finetune import Finetuning
from workbench.jupyter.runs.run_actions import ActionResult, RunActions
from workbench.store.folder import RunFolder, write_json
from workbench.store.labels import read_labels
from workbench.store.trash import trashed
from workbench.telemetry.quantities import run_colour
from workbench.telemetry.streams import TelemetryWriter


@pytest.fixture
def actions(tmp_path: Path) -> RunActions:
    return RunActions(tmp_path, lambda: {"name": "left", "seed": 7})


def run(root: Path, name: str, status: str = "finished", **recipe: Any) -> RunFolder:
    return run_folder(root / f"20260101-000000-{name}-000000-0000", status, status == "running", name=name, **recipe)


def perform(actions: RunActions, verb: str, *folders: RunFolder, **rest: Any) -> list[ActionResult]:
    return list(actions.perform(verb, [folder.id for folder in folders], rest))


def test_tags_and_notes(actions: RunActions, tmp_path: Path) -> None:
    one, two = run(tmp_path, "a"), run(tmp_path, "b")
    assert perform(actions, "label", one, two, add=["x", "y"])[0].text == "tags of a, b changed"
    perform(actions, "label", one, remove=["x"], notes="as hoped")
    assert (read_labels(one).tags, read_labels(one).notes) == (("y",), "as hoped")
    with pytest.raises(RunError, match="is not a tag"):
        perform(actions, "label", one, add=["two words"])


def test_a_run_is_renamed_and_told_so(actions: RunActions, tmp_path: Path) -> None:
    one = run(tmp_path, "a")
    assert perform(actions, "label", one, name="best")[0].text == "a is now called best"
    assert Run(one).name == "best"
    assert perform(actions, "label", one, name="best")[0].text == "nothing changed: best is called so"
    assert perform(actions, "label", one, add=["x"])[0].text == "tags of best changed"
    with pytest.raises(RunError, match="is no name for a run"):
        perform(actions, "label", one, name=["best"])
    assert perform(actions, "label", one, name="")[0].text == "best is now called a"
    assert read_labels(one).tags == ("x",)


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
    assert said.text == "1 knob differs"
    with pytest.raises(RunError, match="cannot run as it is"):
        perform(RunActions(tmp_path), "diff", one)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.process
def test_a_report_is_a_page(actions: RunActions, tmp_path: Path, count: int) -> None:
    folders = [run(tmp_path, name) for name in "ab"[:count]]
    for folder in folders:
        write_json(folder.evaluations, {"unigram_entropy": 3.0, "heldout": [], "result": None})
        with contextlib.closing(TelemetryWriter(folder.telemetry)) as writer:
            for step in (1, 2):
                writer.scalars(step, step, step, loss=4.0)
    # What the page draws third and does not draw at all; what no page may send is nothing.
    *_, said = perform(actions, "report", *folders, places={folders[0].id: 2, "b": "x"})
    assert said.text.endswith("open in a window over this page")
    assert said.page is not None
    assert said.page.startswith(b"<!DOCTYPE html>")
    assert said.sheet is not None
    figures = json.loads(said.page.decode().partition('id="figures">')[2].partition("</script>")[0])
    curves = figures["figures"]["loss/step"]["data"]
    colours = [line["line"]["color"] for line in curves if line["name"] in ("a", "b")]
    assert colours == [run_colour(place) for place in (2, 0)[:count]], "as the table shows them"
    assert bool(said.sheet["path"]) == (count == 1) == folders[0].report.exists()


@pytest.mark.process
def test_an_export_without_a_checkpoint_or_a_name_is_refused(actions: RunActions, tmp_path: Path) -> None:
    folder = run(tmp_path, "a")
    with pytest.raises(RunError, match="name a new folder"):
        perform(actions, "export", folder, target=" ")
    with pytest.raises(RunError, match="checkpoint"):
        perform(actions, "export", folder, target=str(tmp_path / "model"))


@pytest.mark.process
def test_a_scoring_says_what_it_lacks_and_ends_with_its_scores(
    actions: RunActions, tmp_path: Path, corpus: Path
) -> None:
    folder = run(tmp_path, "a")
    with pytest.raises(RunError, match="name benchmarks"):
        perform(actions, "score", folder, on=" ")
    with pytest.raises(RunError, match="no checkpoint"):
        perform(actions, "score", folder, on="lambada")
    trained = launch(tiny_recipe(corpus, 2, "trained"), on="inline", runs_dir=tmp_path, queue=False, say=None)
    trained.wait()
    (tmp_path / "eval").mkdir()
    (tmp_path / "eval" / "lambada.jsonl").write_text('{"context": "amber birch", "target": "cedar"}\n' * 3)
    *going, said = perform(actions, "score", trained.folder, on=f"lambada in {tmp_path / 'eval'}")
    assert going[0].text.startswith("scoring trained: starting")
    assert all(each.going for each in going)
    assert not said.going
    assert re.match(
        r"scored trained: lambada 0\.0000 \(untrained 0, overlap 0\); lambada\.perplexity [\d.e+]+", said.text
    )


@pytest.mark.process
def test_a_fine_tuning_of_the_page_has_an_untrained_twin(
    actions: RunActions, tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its runs are for tests/experiments/finetune.
    monkeypatch.setattr(Finetuning, "resume", lambda self: None)
    folder = run(tmp_path, "a")
    with pytest.raises(RunError, match="name a task"):
        perform(actions, "finetune", folder, on=" in FOLDER")
    trained = launch(tiny_recipe(corpus, 2, "trained"), on="inline", runs_dir=tmp_path, queue=False, say=None)
    trained.wait()
    (tmp_path / "SST-2").mkdir()
    for part in ("train", "dev", "test"):
        (tmp_path / "SST-2" / f"{part}.tsv").write_text("sentence\tlabel\namber\t1\ncedar\t0\n" * 8)
    with pytest.raises(DataError, match="task: unknown value 'nosuch'"):
        perform(actions, "finetune", trained.folder, on="nosuch")
    going, said = perform(actions, "finetune", trained.folder, on=f"sst2 in {tmp_path}")
    assert going.going
    assert said.text.startswith("fine-tuning trained on sst2: 6 runs")
    assert "started before" not in said.text
    (first,) = (each.name for each in FinetuningFolder.root(tmp_path).iterdir())
    _, said = perform(actions, "finetune", trained.folder, on=f"sst2 in {tmp_path}")
    assert f"; the same was started before: {first}, " in said.text
    for each in FinetuningFolder.root(tmp_path).iterdir():
        FinetuningFolder(each).plan.write_text("damaged")
    _, said = perform(actions, "finetune", trained.folder, on=f"sst2 in {tmp_path}")
    assert "started before" not in said.text


def test_a_page_can_ask_for_nothing_else(actions: RunActions, tmp_path: Path) -> None:
    folder = run(tmp_path, "a")
    for verb in ("fork", "set", "stop", "__init__", "perform"):
        with pytest.raises(RunError, match="is none of"):
            perform(actions, verb, folder)
    with pytest.raises(RunError, match="no run"):
        list(actions.perform("delete", [f"..{os.sep}x"], {}))
    with pytest.raises(RunError, match="no run is selected"):
        perform(actions, "delete")


def test_words_that_hold_until_a_run_starts_say_which() -> None:
    assert ActionResult("launched a: queued", waits="a").message()["of"] == [["a", "queued"]]
    assert "of" not in ActionResult("launched a").message()
