"""A benchmark with two scores in different units is kept by step and shown by table, report, page and JSON."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from tests.tiny_runs import tiny_recipe
from workbench.base.errors import RunError
from workbench.client.comparison import compare
from workbench.client.launch import launch
from workbench.plots.report import report_html
from workbench.plots.tables import result_table
from workbench.scoring.benchmark import Benchmark, register, score
from workbench.store.evaluations import Measured, read_evaluations, scores_by_step
from workbench.store.folder import RunFolder, write_json
from workbench.store.result import Result
from workbench.store.view import RunView


class Weights(Benchmark):
    """The share of positive weights, and their root mean square."""

    name = "weights"

    summary = "weights"

    def measure(self, subject):
        weights = torch.cat([weight.detach().flatten() for weight in subject.trained.model.parameters()])
        return {
            "weights.positive": Measured(float((weights > 0).float().mean()), "share", len(weights), "higher"),
            "weights.rms": Measured(float(weights.square().mean().sqrt()), "weight units", len(weights)),
        }


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    register(Weights())
    run = launch(tiny_recipe(corpus, steps=4), on="inline", runs_dir=tmp_path_factory.mktemp("runs"))
    run.wait()
    assert run.status == "finished"
    score(run.folder, "weights")
    return run.folder


@pytest.mark.process
def test_scores_stand_by_step_beside_the_held_out_loss(run: RunFolder) -> None:
    assert json.loads(run.evaluations.read_text())["schema"] == 2
    found = scores_by_step(run)
    assert list(found) == [2, 4]
    assert found[2].keys() >= {"heldout_loss", "bits_per_byte"}
    assert found[4].keys() - found[2].keys() == {"weights.positive", "weights.rms"}
    assert found[4]["weights.positive"].better == "higher"
    assert 0.3 < (found[4]["weights.positive"].value or 0) < 0.7
    heldout = read_evaluations(run)["heldout"]
    assert [point["loss"] for point in heldout] == [named["heldout_loss"].value for named in found.values()]


@pytest.mark.process
def test_table_report_page_and_json_show_every_score(run: RunFolder) -> None:
    view = RunView.read(run)
    positive, untrained = (view.scores[4]["weights.positive"].value, view.scores[4]["weights.positive"].beside)
    assert Result.of(view).scores["weights.positive"] == {
        "value": positive, "unit": "share", "count": view.scores[4]["weights.positive"].count, "better": "higher",
        "beside": untrained, "note": "", "step": 4,
    }  # fmt: skip
    # The page's table of compared runs and the terminal's are made of these rows.
    other = dataclasses.replace(view, scores={}, recipe=view.recipe | {"notes": "other"})
    rows = {row["label"]: row["values"] for row in compare([run, run], [view, other])["numbers"]}
    assert rows["weights.positive (share)"] == [positive, None]
    assert rows["weights.rms (weight units)"][0] == view.scores[4]["weights.rms"].value
    assert "weights.rms (weight units)" in result_table([other, view])
    page = report_html([view])
    assert "weights.positive (share)" in page
    assert f"{positive:.4f} at step 4" in page


@pytest.mark.process
def test_a_second_benchmark_keeps_the_scores_of_the_first(run: RunFolder) -> None:
    before = scores_by_step(run)[4]
    score(run, "weights", step=4)
    assert scores_by_step(run)[4] == before
    with pytest.raises(RunError, match=r"benchmark: unknown value 'weight'; did you mean 'weights'"):
        score(run, "weight")


def test_files_of_schema_1_are_read_and_those_of_a_later_one_say_so(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    write_json(folder.evaluations, {"heldout": [{"step": 5, "loss": 3.5, "bits_per_byte": 1.5, "evaluated_tokens": 9}]})
    assert scores_by_step(folder) == {
        5: {"heldout_loss": Measured(3.5, "nats", 9), "bits_per_byte": Measured(1.5, "bits per byte", 9)}
    }
    write_json(folder.evaluations, {"schema": 3, "points": []})
    with pytest.raises(RunError, match="schema 3; this version reads schemas up to 2"):
        read_evaluations(folder)
