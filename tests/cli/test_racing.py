"""``workbench race``: arms as texts, a race that is followed, and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.experiments.race.conftest import Starter, held, planned, root, tiny, written
from tests.forecasting.machine_rates import RATES
from workbench.cli.command import main
from workbench.experiments.race.race import Race
from workbench.experiments.race.race_plan import Entry, RacePlan
from workbench.forecasting import calibration
from workbench.recipes.recipe import Recipe
from workbench.store.state import write_state

__all__ = ["planned", "root", "tiny"]


@pytest.fixture(autouse=True)
def _known_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    # Measuring has its own test; here it would take most of the time.
    monkeypatch.setattr(calibration, "calibrated", lambda mode, say=None, poll=None: RATES)


@pytest.fixture
def recipe(tiny: Recipe, tmp_path: Path) -> str:
    return str(tiny.save(tmp_path / "tiny.json"))


def test_a_dry_run_says_what_it_would_take(recipe: str, capsys: pytest.CaptureFixture[str], root: Path) -> None:
    asked = ["race", recipe, f"mine={recipe}:optimizer.lr=1e-2,architecture.layers=1", "--budget", "3 s", "--dry-run"]
    assert main([*asked, "--runs", str(root), "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert list(found["arms"]) == ["tiny", "mine"]
    assert found["arms"]["mine"]["steps"] > 1.5 * found["arms"]["tiny"]["steps"]
    assert found["cost"]["runs"] == 24
    assert "tiny: " in err
    assert "(baseline)" in err
    assert not root.exists()


@pytest.mark.parametrize(
    ("arms", "options", "said"),
    [
        (["fast"], [], "no race is called 'fast': `workbench race fast mine=fast:optimizer.lr=1e-3`"),
        (["fast", "fast"], [], "two arms have one name"),
        (["fast", "fast:optimizr=lans"], [], "did you mean 'optimizer'"),
        (["fast", "mine=fast:optimizer.rl=1"], [], "did you mean 'lr'"),
        (["fast", "bert_tiny"], ["--seeds", "many"], "neither a number of seeds nor a list"),
        (["fast", "bert_tiny"], ["--reference", "half"], "neither 'none' nor ratios"),
        (["fast", "bert_tiny"], ["--fail-on", "bad"], "legal: never, not-better, undecided, worse"),
        (["nope"], ["--cancel"], "no race 'nope'; races here: none"),
        ([], ["--cancel"], "which race? Here: none"),
    ],
)
def test_wrong_requests(
    arms: list[str], options: list[str], said: str, capsys: pytest.CaptureFixture[str], root: Path
) -> None:
    assert main(["race", *arms, *options, "--runs", str(root)]) == 2
    assert said in capsys.readouterr().err


def test_a_failed_race_has_no_verdict_and_is_shown_as_failed(
    planned: Callable[..., RacePlan], root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plan = planned()
    folder, starter = written(plan), Starter(plan, lambda entry: 2.0)
    Race(folder).advance(starter)
    starter.end_all()
    write_state(plan.run_folder(Entry("mine", 0)), status="failed", error="the loss became nan")
    Race(folder).advance(starter)
    assert Race(folder).status == "failed"
    asked = ["race", plan.id, "--runs", str(root), "--results", str(tmp_path / "race.json")]
    for more in ([], ["--show"], ["--show", "--fail-on", "worse"]):
        (tmp_path / "race.json").unlink(missing_ok=True)
        assert main([*asked, *more]) == 1
        out, err = capsys.readouterr()
        assert "nothing could be judged" in out
        assert "mine failed, so there is no verdict" in err
        found = json.loads((tmp_path / "race.json").read_text())
        assert (found["status"], found["verdict"], [each["verdict"] for each in found["verdicts"]]) == (
            "failed", None, [None],
        )  # fmt: skip
    assert "none (failed)" in Race(folder).html()


def test_a_race_that_is_there_is_shown_and_fails_as_asked(
    planned: Callable[..., RacePlan], root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["race", "--runs", str(root)]) == 0
    assert "no races in" in capsys.readouterr().out
    race = held(planned())
    assert main(["delete", race.id, "--yes", "--runs", str(root)]) == 2
    assert f"is a race, and what is deleted is runs: `workbench runs --tag {race.folder.tag}" in capsys.readouterr().err
    assert main(["race", "--runs", str(root), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["races"]
    assert (row["race"], row["name"], row["status"]) == (race.id, "baseline vs mine", "finished")
    assert main(["race", "--runs", str(root)]) == 0
    assert race.id in capsys.readouterr().out
    asked = ["race", race.id[:20], "--runs", str(root)]
    assert main(asked) == 0
    assert "mine is worse than baseline by 0.5" in capsys.readouterr().out
    assert main([*asked, "--show"]) == 0, "how it stands fails nothing"
    assert capsys.readouterr().out.splitlines()[0].startswith("arm ")
    assert main([*asked, "--show", "--fail-on", "worse"]) == 3, "unless it is asked what does"
    assert "mine is worse than baseline" in capsys.readouterr().err
    assert main([*asked, "--json", "--fail-on", "worse", "--results", str(tmp_path / "race.json"),
                 "--report", str(tmp_path / "race.html")]) == 3  # fmt: skip
    out, err = capsys.readouterr()
    assert json.loads(out)["verdict"] == "worse"
    assert "mine is worse" in err
    assert (tmp_path / "race.xml").exists()
    assert "mine is worse" in (tmp_path / "race.html").read_text()
    # By its id, a beginning of it that begins its runs' ids, too, or its name.
    for which in (race.id, race.id[:15], race.plan.name):
        assert main(["report", which, "--runs", str(root), "--json"]) == 0
        path = str(race.folder.path / "report.html")
        assert json.loads(capsys.readouterr().out) == {"race": race.id, "report": path}
    assert "mine is worse" in Path(path).read_text()
    assert main([str(word) for word in ("race", race.folder.path, "--detach")]) == 0
    assert capsys.readouterr().out.strip() == race.id
    assert main([*asked, "--cancel"]) == 2
    assert "is finished: there is nothing to cancel" in capsys.readouterr().err
    open_race = written(replace(planned(), name="given up"))
    assert main(["race", open_race.id, "--runs", str(root), "--show", "--fail-on", "worse"]) == 1
    assert "is interrupted" in capsys.readouterr().err
    assert main(["race", open_race.id, "--runs", str(root), "--cancel"]) == 0
    capsys.readouterr()
    assert main(["race", open_race.id, "--runs", str(root)]) == 1
    assert "is cancelled: it cannot be resumed; start it anew with the same command" in capsys.readouterr().err
    assert main(["race", "--runs", str(root)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"{open_race.id}  given up  cancelled"


def test_a_gate_says_that_nothing_was_compared(
    planned: Callable[..., RacePlan], root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    race = held(planned(), lambda entry: 2.99)
    for more, code in (([], 0), (["--show"], 0), (["--fail-on", "undecided"], 3)):
        assert main(["race", race.id, "--runs", str(root), "--fail-on", "worse", *more]) == code
        last = capsys.readouterr().err.splitlines()[-1]
        assert ("note: nothing was compared for mine" in last) == (code == 0), last
