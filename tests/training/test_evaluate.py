"""Held-out loss depends on the weights and the held-out text, on nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import torch

from tests.training.conftest import LiveRun
from workbench.choices.data.tokens import PreparedData
from workbench.choices.progress import Budget, Progress
from workbench.recipe import Recipe
from workbench.training.assemble import assemble
from workbench.training.evaluate import evaluate, main, points_passed


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
    one, two = assemble(tiny, prepared, torch.device("cpu")), assemble(other, prepared, torch.device("cpu"))
    two.model.load_state_dict(one.model.state_dict())
    first, second = evaluate(tiny, one, final=final), evaluate(other, two, final=final)
    assert first.loss == pytest.approx(second.loss, abs=1e-5)
    assert (first.tokens, first.scored) == (second.tokens, second.scored)
    assert evaluate(tiny, one, final=final) == first
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
