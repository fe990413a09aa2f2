"""``workbench sweep``: knobs as texts, a sweep that is shown, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.experiments.sweep.conftest import Planned, held, planned, root, tiny
from tests.forecasting.machine_rates import RATES
from workbench.cli.command import main
from workbench.forecasting import calibration
from workbench.recipes.recipe import Recipe

__all__ = ["planned", "root", "tiny"]


@pytest.fixture(autouse=True)
def _known_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "calibrated", lambda mode, say=None, poll=None: RATES)


def test_a_dry_run_says_what_it_would_take(
    tiny: Recipe, tmp_path: Path, capsys: pytest.CaptureFixture[str], root: Path
) -> None:
    recipe = str(tiny.save(tmp_path / "tiny.json"))
    asked = ["sweep", recipe, "--over", "optimizer.lr=1e-4..1e-2", "--over", "depth.kind=full,freeze", "--sampler"]
    asked += ["random", "--points", "5", "--seeds", "2", "--budget", "100 steps", "--set", "architecture.layers=4"]
    assert main([*asked, "--dry-run", "--runs", str(root), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["cost"]["runs"] == 10
    assert "5 points on 2 seeds each, 10 runs" in err
    assert "optimizer.lr: 0.0001 to 0.01, logarithmic" in err
    assert "100 steps each" in err
    assert not root.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fast"], "over what? For example --over"),
        (["fast", "--over", "optimizer.lr"], "is not PATH=VALUES"),
        (["fast", "--over", "optimizer.rl=1"], "did you mean 'lr'"),
        (["fast", "--over", "optimizer.lr=1e-3", "--sampler", "gird"], "did you mean 'grid'"),
        (["fast", "--over", "optimizer.lr=1e-4..1e-2"], "a range needs another sampler: random, tpe, gp, stepwise\n"),
        (["fast", "--over", "optimizer.lr=1e-4..1e-2", "--sampler", "random"], "may try: runs=20, or --points 20\n"),
        (["nope", "--cancel"], "no sweep 'nope'; sweeps here: none"),
        (["--show"], "which sweep? Here: none"),
    ],
)
def test_wrong_requests(words: list[str], said: str, capsys: pytest.CaptureFixture[str], root: Path) -> None:
    assert main(["sweep", *words, "--runs", str(root)]) == 2
    assert said in capsys.readouterr().err


def test_a_sweep_that_is_there_is_shown_followed_and_kept(
    planned: Planned, root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    runs = ["--runs", str(root)]
    assert main(["sweep", *runs]) == 0
    assert "no sweeps in" in capsys.readouterr().out
    sweep = held(planned(name="mine"))
    assert main(["sweep", *runs, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["sweeps"]
    assert (row["sweep"], row["name"], row["status"]) == (sweep.id, "mine", "finished")
    files = [tmp_path / "sweep.json", tmp_path / "sweep.html"]
    assert main(["sweep", "mine", *runs, "--results", str(files[0]), "--report", str(files[1])]) == 0
    assert "best of 6: point 3" in capsys.readouterr().out
    assert all(path.exists() for path in files)
    assert main(["sweep", sweep.id[:20], *runs, "--show"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["point", "state", "optimizer.lr"]
    assert lines[1].split()[:5] == ["3", "best", "0.002", "2", "1.910"]
    assert main(["sweep", str(sweep.folder.path), *runs, "--json", "--show"]) == 0
    assert json.loads(capsys.readouterr().out)["best"]["point"] == 3
    assert main(["sweep", "mine", *runs, "--cancel"]) == 2
    assert "is finished: there is nothing to cancel" in capsys.readouterr().err
