"""Runs of a user's own objects that go on: bit for bit, with the same objects only, in any program."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from tests.accelerated.models import MostlyFrozen, Start, cross_entropy, shuffled, stacked, stop_after
from workbench.errors import RecipeError, RunError, RunFailed

# A run asks git for the revision that it runs.
pytestmark = pytest.mark.process


def test_an_interrupted_run_repeats_bit_for_bit(start: Start) -> None:
    """A shuffling loader, dropout, dropped layers, running means, momenta: all go on where they were."""
    options: dict[str, Any] = {
        "optimizer": {"kind": "lans", "lr": 1e-2},
        "depth": "progressive_drop",
        "budget": "11 steps",
    }
    straight = stacked()
    start(straight, shuffled(), loss=cross_entropy, **options).wait()
    first, loss = stacked(), stop_after(6)
    run = loss.run = start(first, shuffled(), loss=loss, **options)
    assert run.wait()["stopped_early"]
    stopped = run.state.step
    assert 0 < stopped < 11
    again = stacked(seed=5)
    resumed = start(again, shuffled(), loss=counted_as(loss), resume=run.id)
    assert resumed.wait()["steps"] == 11
    for name, value in straight.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name
    assert not torch.equal(first.last.weight, straight.last.weight)
    # In the same program the run knows its objects.
    with pytest.raises(RunError, match="is finished"):
        run.resume()
    assert torch.equal(run.load_into(stacked(seed=7)).last.weight, straight.last.weight)
    assert torch.equal(run.load_into(first, step=stopped).last.weight, first.last.weight)


def counted_as(loss: Any) -> Callable[..., torch.Tensor]:
    """The plain loss under the name that the run began with."""

    def counted(model: nn.Module, batch: Any) -> torch.Tensor:
        return cross_entropy(model, batch)

    return counted


class TestResuming:
    def test_in_the_same_program(self, start: Start) -> None:
        loss = stop_after(2)
        run = loss.run = start(stacked(), shuffled(), loss=loss, budget="5 steps")
        run.wait()
        assert "attempt 2" in run.resume()
        assert run.wait()["steps"] == 5

    def test_other_objects_are_refused(self, start: Start) -> None:
        loss = stop_after(1)
        run = loss.run = start(stacked(), shuffled(), loss=loss, budget="5 steps")
        run.wait()
        with pytest.raises(RunError, match=r"architecture\.parameters was 4627, is"):
            start(stacked(layers=5), shuffled(), loss=loss, resume=run)
        with pytest.raises(
            RunError, match=r"\(architecture\.model was Stacked, is Linear; .*parameters was 4627, is 27"
        ):
            start(nn.Linear(8, 3), shuffled(), loss=loss, resume=run)
        with pytest.raises(RecipeError, match="goes on under the choices that it began with"):
            start(stacked(), shuffled(), loss=loss, resume=run, optimizer="lans")
        loss.calls = 10
        assert start(stacked(), shuffled(), loss=loss, resume=run.folder.path).wait()["steps"] == 5

    def test_nothing_else_can_start_it(self, start: Start) -> None:
        loss = stop_after(1)
        run = loss.run = start(stacked(), shuffled(), loss=loss, budget="5 steps")
        run.wait()
        plain, root = wb.Run(run.id, run.folder.path.parent), f"--runs={run.folder.path.parent}"
        for refused in (plain.resume, plain.fork):
            with pytest.raises(RunError, match=f"accelerate\\(model, loader, resume='{run.id}'\\)"):
                refused()
        with pytest.raises(RecipeError, match="is not whole: a loader, a loss, a model of its run were objects"):
            wb.launch(run.recipe, runs_dir=run.folder.path.parent)
        done = subprocess.run(
            [sys.executable, "-m", "workbench", "resume", run.id, root], capture_output=True, text=True
        )
        assert done.returncode == 2
        assert "workbench.accelerate(model, loader" in done.stderr
        with pytest.raises(RunError, match="is not whole"):
            run.export(run.folder.path / "exported")


def test_a_run_of_before_frozen_weights_were_counted_goes_on(start: Start) -> None:
    loss = stop_after(2)
    run = loss.run = start(MostlyFrozen(), shuffled(), loss=loss, budget="4 steps")
    assert run.wait()["stopped_early"]
    recipe = json.loads(run.folder.recipe.read_text())
    del recipe["architecture"]["frozen"]
    run.folder.recipe.write_text(json.dumps(recipe))
    resumed = start(MostlyFrozen(), shuffled(), loss=counted_as(loss), resume=run.id)
    # Taken for the same objects; that the file is another than its checkpoint knows is this test's doing.
    with pytest.raises(RunFailed, match="was made by recipe"):
        resumed.wait()
