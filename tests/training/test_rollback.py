"""Going back after a loss that is not finite: in real workers, from the recipe's knob alone."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest

from tests.training.conftest import LiveRun
from workbench.recipes.recipe import Recipe
from workbench.store import control
from workbench.training import checkpoint

pytestmark = pytest.mark.process
Live = Callable[..., LiveRun]
BUDGET = {"amount": 500, "unit": "steps", "evaluations": 1, "evaluation_tokens": 1024}


def test_a_run_that_diverges_goes_back_to_its_checkpoint_at_half_the_rate(tiny: Recipe, live: Live) -> None:
    run = live(tiny.with_(budget={**BUDGET, "rollbacks": 2})).fork()
    run.until(lambda run: run.steps_said > 5)
    # Weights grow a hundredfold a step; a checkpoint is saved before each change, and may hold the first of them.
    for path, value in (("optimizer.lr", 100.0), ("optimizer.weight_decay", 1.0)):
        control.send(run.folder, "set", path=path, value=value)
    assert run.wait() == 0, run.log
    assert (run.state.status, run.state.step, run.state.repeats) == ("finished", 500, False)
    (back,) = [event for event in run.telemetry.events if "rollback" in event["data"]]
    assert re.search(r"optimizer\.lr (0\.003|100) -> 0\.0015 \(rollback 1 of 2\)", back["text"])
    steps, losses = run.telemetry.series("loss")
    assert steps == list(range(1, 501))
    assert all(map(math.isfinite, losses))
    saved = checkpoint.load_latest(run.folder.checkpoints)
    assert saved is not None
    assert saved.meta["overrides"] == {"optimizer.lr": 0.0015}


def test_without_a_rollback_left_it_ends_as_ever(tiny: Recipe, live: Live) -> None:
    broken = {"lr": 100.0, "weight_decay": 1.0}
    run = live(tiny.with_(optimizer=broken, budget={**BUDGET, "checkpoint_seconds": 1e-6, "rollbacks": 1})).fork()
    assert run.wait() == 1
    assert run.state.status == "failed"
    assert sum("rollback" in event["data"] for event in run.telemetry.events) == 1
