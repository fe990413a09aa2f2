"""Objectives with two networks in training: a generator fills in masked tokens, the main network judges them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.costs import quick_ones
from workbench.choices.data.tokens import Batch
from workbench.recipes.recipe import Recipe
from workbench.training import checkpoint
from workbench.training.evaluate import evaluate
from workbench.training.loop import Training
from workbench.training.restored import take_encoder

Build = Callable[..., Training]
every_kind = pytest.mark.parametrize("kind", ["replaced_token", "meta_controller"])


@pytest.fixture
def two(tiny: Recipe, build: Build) -> Callable[..., Training]:
    """``two(kind, rows, ...)`` -> a Training of both networks at step 0, cut into micro-batches of so many rows."""

    def made(kind: str, rows: int | None = None, **changes: Any) -> Training:
        recipe = tiny.with_(architecture={"dropout": 0.0}, objective=kind, execution={"micro_batch_size": rows})
        return build(recipe.with_(**changes))

    return made


def weights(training: Training) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in training.model.parameters()]


@every_kind
def test_both_networks_learn_however_a_step_is_cut(kind: str, two: Callable[..., Training]) -> None:
    whole, parts = two(kind), two(kind, 2)
    before = weights(whole)
    for _ in range(5):
        whole.step()
        parts.step()
    assert all(not torch.equal(old, new) for old, new in zip(before, weights(whole), strict=True))
    for one, other in zip(weights(whole), weights(parts), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)


@every_kind
def test_hidden_matrices_of_both_networks_are_matrices_to_the_optimizer(
    kind: str, two: Callable[..., Training]
) -> None:
    groups = two(kind).optimizer.param_groups
    names = [name for group in groups if group["role"] == "matrix" for name in group["names"]]
    assert any(name.startswith("backbone.blocks.") for name in names)
    assert any(name.startswith("generator.backbone.blocks.") for name in names)


@every_kind
@pytest.mark.parametrize("embeddings", ["shared", "gradient_disentangled"])
def test_training_goes_on_from_a_checkpoint_bit_for_bit(
    kind: str, embeddings: str, two: Callable[..., Training]
) -> None:
    whole, again = (two(kind, objective={"embeddings": embeddings}) for _ in range(2))
    for _ in range(3):
        whole.step()
    model, tied = checkpoint.model_tensors(whole.model)
    tensors, rest = checkpoint.optimizer_tensors(whole.optimizer)
    checkpoint.restore_model(again.model, {name: value.clone() for name, value in model.items()}, tied)
    checkpoint.restore_optimizer(again.optimizer, {name: value.clone() for name, value in tensors.items()}, rest)
    again.progress = whole.progress
    for training in (whole, again):
        for _ in range(3):
            training.step()
    assert all(map(torch.equal, weights(whole), weights(again)))


@pytest.mark.parametrize("embeddings", ["shared", "gradient_disentangled"])
def test_the_main_network_is_taken_for_an_encoder(
    embeddings: str, two: Callable[..., Training], tmp_path: Path
) -> None:
    """A fine-tuning's backbone has one table, whatever that of the main network was the sum of."""
    training = two("replaced_token", objective={"embeddings": embeddings})
    for _ in range(3):
        training.step()
    tensors, tied = checkpoint.model_tensors(training.model)
    saved = checkpoint.save(tmp_path, 3, {"model": tensors}, {"tied": tied, "tokens": 0, "seconds": 0.0})
    other = two("masked").model
    take_encoder(other, saved)
    tokens_BT = torch.arange(5, 21)[None]
    nothing_BT = torch.zeros_like(tokens_BT)
    batch = Batch(tokens_BT, torch.arange(16)[None], nothing_BT.int(), torch.arange(1))
    ours, theirs = (model.eval().backbone(tokens_BT, batch, training.plan()) for model in (other, training.model))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    "depth", quick_ones(["progressive_drop", "stacking", "multi_stage", "freeze"], "progressive_drop", "multi_stage")
)
def test_depth_methods_act_on_the_main_network_alone(depth: str, two: Callable[..., Training]) -> None:
    """The generator has all its layers from the first step, and every one of them trains in every step."""
    training = two("replaced_token", architecture={"layers": 4, "final_norm": True}, depth=depth, budget="20 steps")
    generator: Any = training.model.generator
    moved, states = generator.backbone.blocks, set()
    before = [block.attention.qkv.weight.detach().clone() for block in moved]
    for _ in range(20):
        states.add(training.plan().states)
        training.step()
        assert all(parameter.requires_grad for parameter in moved.parameters())
    assert len(moved) == 4
    assert not any(torch.equal(old, block.attention.qkv.weight) for old, block in zip(before, moved, strict=True))
    assert len(states) > 1, "the main network had something done to it"


@every_kind
def test_scores_say_how_well_the_main_network_judges(kind: str, two: Callable[..., Training]) -> None:
    training = two(kind)
    recipe, made = training.recipe, training.assembled
    found, again = (evaluate(recipe, made, made.heldout).scores for _ in range(2))
    assert found == again
    shares = {name for name, score in found.items() if score.unit == "share"}
    assert shares >= {"precision", "recall", "main_accuracy", "always_real"}
    assert found["main_accuracy"].count == found["always_real"].count >= made.heldout.tokens
    # 15% of the tokens are filled in, most of them wrongly by a new generator.
    assert 0.8 < found["always_real"].value < 0.9
