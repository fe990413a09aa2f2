"""Scoring in the background and from the command line: progress, the table, the card, and what is refused."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from workbench.base.errors import RunError
from workbench.cli import main
from workbench.client.run import Run
from workbench.client.scoring import Scoring, score
from workbench.models.export import export
from workbench.scoring.job import score_job
from workbench.store.evaluations import Measured, add_scores
from workbench.store.folder import RunFolder
from workbench.store.score_table import score_rows, score_text

pytestmark = pytest.mark.process
masked = pytest.mark.parametrize("run", ["masked"], indirect=True)


@masked
def test_a_run_is_scored_in_the_background_and_says_how_far_it_is(run: Run, data: Path) -> None:
    run.report()
    going = score(run, on="copa", data=data)
    assert going.progress["status"] == "running"
    found = going.wait(120)
    assert found.keys() == {"copa", "copa.per_character"}
    assert Scoring(run).progress["status"] == "finished"
    assert "untrained" in str(going)
    assert "Benchmarks" in run.folder.report.read_text(), "written anew"


@masked
def test_what_cannot_be_scored_says_why(run: Run, data: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="unknown value 'coba'; did you mean 'copa'"):
        score(run, on="coba", data=data).wait(120)
    with pytest.raises(RunError, match=f"run '{run.id}' has no checkpoint of step 5"):
        score_job(run.folder, ["copa"], 5, data=data)
    assert Scoring(run).progress["status"] == "failed"
    descriptor = os.open(run.folder.scoring_lock, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(RunError, match="is being scored already"):
        score(run, on="copa", data=data)
    os.close(descriptor)


@masked
def test_the_command_prints_the_table_and_json(run: Run, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = ["--runs", str(run.folder.path.parent), "--data", str(data)]
    assert main(["score", run.id, "--on", "copa", "--fast", *runs]) == 0
    printed = capsys.readouterr()
    assert "copa_fast (share right)" in printed.out
    assert "copa, untrained" in printed.err
    assert main(["score", run.id, "--on", "blimp", "--json", *runs]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["run"] == run.id
    assert answer["scores"]["blimp"]["beside"].keys() >= {"untrained", "chance"}
    assert main(["score", run.id, "--on", ",", *runs]) == 2
    export(run.folder, data.parent / "exported")
    assert "| copa_fast (share right) |" in (data.parent / "exported" / "README.md").read_text()


def test_seeds_of_one_recipe_stand_together(tmp_path: Path) -> None:
    for name, value, recipe in (("a", 0.5, {"seed": 1}), ("b", 0.7, {"seed": 2}), ("c", 0.9, {"seed": 3, "x": 1})):
        folder = RunFolder(tmp_path / name)
        folder.path.mkdir()
        folder.recipe.write_text(json.dumps(recipe))
        add_scores(folder, 4, 0, 0.0, {"blimp": Measured(value, "share right", 9, "higher", {"chance": 0.5}, "how")})
    row = score_rows(RunFolder(tmp_path / "a"))[0]
    assert row.over_seeds == "0.6000 ± 0.1414 (2 seeds)"
    assert replace(row, seeds=(0.5,)).over_seeds == ""
    assert "blimp (share right)  0.5000  chance 0.5    9      4     0.6000 ± 0.1414 (2 seeds)" in score_text([row])
