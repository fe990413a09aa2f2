"""Held-out loss depends on the weights and the held-out text, on nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.training.conftest import LiveRun
from workbench.choices.data.tokens import PreparedData
from workbench.choices.progress import Budget, Progress
from workbench.models.export import main as export
from workbench.plots.report import main as report
from workbench.recipes.recipe import Recipe
from workbench.store.folder import read_json
from workbench.training.assemble import assemble
from workbench.training.evaluate import DURING, evaluate, main, points_passed


@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        {"objective.mask_rate": 0.4},
        {"objective.corruption": "all_mask"},
        {"depth": "progressive_drop"},
        {"data.batch_size": 5},
        {"execution.micro_batch_size": 2},
        {"optimizer.lr": 0.1},
        {"seed": 3},
    ],
)
def test_independent_of_how_it_was_trained(
    tiny: Recipe, prepared: PreparedData, change: dict[str, object], final: bool
) -> None:
    other = tiny.with_(**change)
    one, two = assemble(tiny, prepared), assemble(other, prepared)
    two.model.load_state_dict(one.model.state_dict())
    heldout = one.heldout if final else one.heldout.part(DURING)
    first, second = evaluate(tiny, one, heldout), evaluate(other, two, heldout)
    assert first.loss == pytest.approx(second.loss, abs=1e-5)
    assert (first.tokens, first.scored) == (second.tokens, second.scored)
    assert evaluate(tiny, one, heldout) == first
    assert one.model.training


def test_points_are_spread_evenly_and_end_with_the_run() -> None:
    for unit in ("steps", "tokens", "seconds"):
        budget = Budget(amount=30, unit=unit, evaluations=3)
        at = [points_passed(Progress(step=n, tokens=n, seconds=float(n), budget=budget)) for n in range(31)]
        assert [n for n in range(1, 31) if at[n] > at[n - 1]] == [10, 20, 30]


def test_a_saved_run_is_evaluated_from_outside(
    tiny: Recipe, live: Callable[[Recipe], LiveRun], capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.training.test_resume import train

    run = live(tiny)
    train(run, stop_at=5)
    train(run, resume=True)
    assert main([str(run.folder.path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    said = json.loads(run.folder.evaluations.read_text())["result"]["heldout_loss"]
    assert answer["heldout_loss"] == pytest.approx(said, abs=1e-6)
    assert main([str(run.folder.path), "--json", "--checkpoint", "5"]) == 0
    assert json.loads(capsys.readouterr().out)["step"] == 5
    assert main([str(run.folder.path), "--checkpoint", "6"]) == 2
    assert "it has those of 5, 20" in capsys.readouterr().err


@pytest.mark.parametrize("objective", ["masked", "causal"])
def test_the_run_folder_is_enough(
    objective: str, tiny: Recipe, live: Callable[[Recipe], LiveRun], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The text is deleted and the cache is empty: the run is still evaluated, reported and exported."""
    from tests.training.test_resume import train

    text = tmp_path / "text.jsonl"
    text.write_bytes(Path(tiny.data.paths[0]).read_bytes())
    run = live(tiny.with_(data={"paths": (str(text),)}, objective=objective))
    train(run)
    text.unlink()
    empty = tmp_path / "empty"
    monkeypatch.setenv("WORKBENCH_CACHE", str(empty))
    assert main([str(run.folder.path), "--json"]) == 0
    shown = capsys.readouterr()
    answer, result = json.loads(shown.out), read_json(run.folder.evaluations)["result"]
    same = ("heldout_loss", "bits_per_byte", "unigram_entropy", "bigram_entropy", "learned")
    assert {key: answer[key] for key in same} == {key: result[key] for key in same}
    assert shown.err == ""
    assert report([str(run.folder.path)]) == 0
    assert export([str(run.folder.path), str(tmp_path / "model")]) == 0
    assert not empty.exists()


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-40])])
def test_a_run_without_its_heldout_set_takes_it_from_the_data_and_says_so(
    tiny: Recipe, live: Callable[[Recipe], LiveRun], capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None]
) -> None:
    from tests.training.test_resume import train

    run = live(tiny)
    train(run)
    damage(run.folder.heldout)
    assert main([str(run.folder.path), "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["heldout_loss"] == read_json(run.folder.evaluations)["result"]["heldout_loss"]
    assert "preparing the data of the run again" in shown.err
