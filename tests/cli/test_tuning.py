"""``workbench tune``: a tuning as texts, one that is shown, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.experiments.sweep.conftest import Trained, finish
from tests.experiments.tune.conftest import Planned, held, planned, root, tiny
from tests.forecasting.machine_rates import RATES
from workbench.cli.command import main
from workbench.forecasting import calibration
from workbench.recipes.recipe import Recipe

__all__ = ["planned", "root", "tiny"]


@pytest.fixture(autouse=True)
def _known_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "calibrated", lambda mode, say=None, poll=None: RATES)


def test_a_dry_run_says_how_the_budget_is_divided(
    tiny: Recipe, tmp_path: Path, capsys: pytest.CaptureFixture[str], root: Path
) -> None:
    recipe = str(tiny.save(tmp_path / "tiny.json"))
    asked = [
        "tune",
        recipe,
        "--budget",
        "20 min",
        "--over",
        "optimizer.lr=1e-4..1e-2",
        "--over",
        "depth.kind=full,freeze",
    ]
    assert main([*asked, "--set", "architecture.layers=4", "--dry-run", "--runs", str(root), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["division"]["seconds"] == 1200
    assert "budget 20 min: " in err
    assert "    depth.kind: full, freeze" in err
    assert not root.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fast"], "for how long? For example --budget '2 hours'"),
        (["fast", "--budget", "1 hour", "--axis", "rates"], "did you mean 'rate'"),
        (["fast", "--budget", "1 hour", "--axis", "learning_rate"], "work, too: --over optimizer.lr=1e-4..1e-2"),
        (["fast", "--budget", "1 hour", "--axis", "rate", "--over", "optimizer.lr=1"], "take one"),
        (["nope", "--cancel"], "no tuning 'nope'; tunings here: none"),
        (["--show"], "which tuning? Here: none"),
    ],
)
def test_wrong_requests(words: list[str], said: str, capsys: pytest.CaptureFixture[str], root: Path) -> None:
    assert main(["tune", *words, "--runs", str(root)]) == 2
    assert said in capsys.readouterr().err


def test_a_tuning_that_is_there_is_shown_followed_and_kept(
    planned: Planned, root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    runs = ["--runs", str(root)]
    assert main(["tune", *runs]) == 0
    assert "no tunings in" in capsys.readouterr().out
    tuning = held(planned(name="mine", axes={"architecture.layers": [2, 1]}))
    assert main(["tune", *runs, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["tunings"]
    assert (row["tuning"], row["name"], row["status"]) == (tuning.id, "mine", "finished")
    files = [tmp_path / name for name in ("r.json", "r.html", "tuned.json")]
    written = ["--results", str(files[0]), "--report", str(files[1]), "--tuned", str(files[2])]
    assert main(["tune", "mine", *runs, *written]) == 0
    assert "confirmed: architecture.layers 2 -> 1" in capsys.readouterr().out
    assert all(path.exists() for path in files)
    assert Recipe.load(files[2]).architecture.layers == 1
    assert main(["tune", tuning.id, *runs, "--show"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("setting  state  differs in")
    assert lines[2].split()[:3] == ["1", "kept", "layers=1"]
    assert main(["tune", "mine", *runs, "--cancel"]) == 2
    assert "is finished: there is nothing to cancel" in capsys.readouterr().err


class Unlucky(Trained):
    """Three layers look better on tuning text, and are worse on any other."""

    def end_all(self) -> None:
        for folder, recipe in self.going:
            sign = -1 if recipe.data.kind == "tuning_text" else 1
            finish(folder, 2.0 + sign * 0.3 * (recipe.architecture.layers == 3) + 0.01 * (recipe.seed % 3))
        self.going.clear()


def test_what_fails_ci_is_asked_for_as_in_a_race(
    planned: Planned, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held(planned(name="worse", axes={"architecture.layers": [2, 3]}), Unlucky())
    held(planned(name="nothing", axes={"architecture.layers": [2, 3]}))
    held(planned(name="better", axes={"architecture.layers": [2, 1]}))

    def code(name: str, *words: str) -> int:
        return main(["tune", name, "--runs", str(root), *words])

    levels = ("never", "worse", "undecided", "not-better")
    assert [code("worse", "--fail-on", level) for level in levels] == [0, 3, 3, 3]
    assert "tuned is worse than before by 0.300 nats" in capsys.readouterr().err
    assert [code("nothing", "--fail-on", level) for level in levels] == [0, 0, 0, 3]
    assert "tuning nothing found nothing that pays" in capsys.readouterr().err
    assert [code("better", "--fail-on", level) for level in levels] == [0, 0, 0, 0]
    assert code("worse") == 0, "nothing was asked"
    assert code("worse", "--show") == 0, "how it stands is no judgement"
    assert code("worse", "--show", "--fail-on", "worse") == 3, "unless one is asked for"
    assert code("worse", "--fail-on", "worst") == 2
    assert "did you mean 'worse'" in capsys.readouterr().err
