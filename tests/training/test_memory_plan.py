"""What an engine does about memory, in whole runs: resumed, forked, measured."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.training.conftest import LiveRun
from tests.training.test_resume import assert_same, staged, train
from workbench.recipe import Recipe
from workbench.runs.folder import read_json
from workbench.runs.forks.fork import create_fork
from workbench.training.loop import Training

Build = Callable[..., Training]
Live = Callable[[Recipe], LiveRun]


@pytest.mark.parametrize("optimizer", ["adamw", "lans"])
def test_states_in_8_bits_resume_bit_for_bit(tiny: Recipe, live: Live, optimizer: str) -> None:
    """With layers that appear and take over codes and scales, rest and thaw."""
    depth = {"kind": "multi_stage", "state": "copy"}
    recipe = staged(tiny, optimizer=optimizer, depth=depth, **{"execution.optimizer_states": "8bit"})
    whole, parts = live(recipe), live(recipe)
    straight = train(whole)
    assert train(parts, stop_at=10).step == 10
    assert_same(straight, train(parts, resume=True))
    moments = {name: t for name, t in straight.tensors["optimizer"].items() if name.endswith("/exp_avg")}
    # 96 x 32 numbers are too few to be worth a code; the feed-forward part's 128 x 32 are not.
    assert {t.dtype for name, t in moments.items() if "qkv" in name} == {torch.float32}
    assert {t.dtype for name, t in moments.items() if "up" in name} == {torch.int8}


@pytest.mark.parametrize(("before", "after"), [("8bit", "fp32"), ("fp32", "8bit"), ("8bit", "8bit")])
def test_a_fork_reads_states_of_another_form(tiny: Recipe, live: Live, before: str, after: str) -> None:
    recipe = tiny.with_(**{"execution.optimizer_states": before})
    whole, parent, forked = live(recipe), live(recipe), live(recipe)
    straight = train(whole)
    train(parent, stop_at=10)
    forked.folder, lock = create_fork(parent.folder, {"execution.optimizer_states": after, "name": "fork"})
    os.close(lock)
    ended = train(forked, resume=True)
    assert ended.step == straight.step == 20
    for name, weight in straight.tensors["model"].items():
        if before == after:
            assert torch.equal(ended.tensors["model"][name], weight), name
        else:
            torch.testing.assert_close(ended.tensors["model"][name], weight, atol=0.02, rtol=0.2)


@pytest.mark.parametrize("change", [{}, {"execution.micro_batch_size": 4}, {"optimizer": "lans"}])
def test_losses_with_bf16_weights_follow_those_with_float32(tiny: Recipe, build: Build, change: dict[str, Any]) -> None:
    recipe = tiny.with_(**change).with_(**{"execution.precision": "bf16"})
    losses = []
    for weights in ("fp32", "bf16"):
        training = build(recipe.with_(**{"execution.weights": weights}))
        for _ in range(20):
            training.step()
        training.settle()
        losses.append(torch.tensor(list(training.recorder.recent)))
        assert {p.dtype for p in training.model.parameters()} == {torch.float32}
    assert losses[0][-1] < losses[0][0] - 0.1
    torch.testing.assert_close(losses[1], losses[0], rtol=0.01, atol=0.02)


def test_bf16_weights_resume_bit_for_bit_and_are_saved_in_float32(tiny: Recipe, live: Live) -> None:
    """With layers that appear, rest and thaw, recomputed layers and two micro-batches."""
    knobs = {"execution.weights": "bf16", "execution.precision": "bf16", "execution.recompute": "layers"}
    recipe = staged(tiny, depth={"kind": "multi_stage", "state": "copy"}, **knobs)
    whole, parts = live(recipe), live(recipe)
    straight = train(whole)
    assert train(parts, stop_at=10).step == 10
    assert_same(straight, train(parts, resume=True))
    weights = straight.tensors["model"].values()
    assert {weight.dtype for weight in weights} == {torch.float32}
    # Not copies that were rounded: they have digits below bf16's.
    assert any(not torch.equal(weight, weight.bfloat16().float()) for weight in weights if weight.ndim == 2)
    said = read_json(whole.folder.environment)["memory"]
    assert (said["weights"], said["recompute"]) == ("bf16", "layers")
