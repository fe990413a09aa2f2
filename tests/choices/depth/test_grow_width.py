"""Growth in width: the architecture of each stage, copies that part in training, refusals."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from workbench.base.errors import RecipeError
from workbench.choices.architectures.post_ln import PostLN
from workbench.choices.architectures.pre_ln import PreLN
from workbench.choices.depth.grow_width import GrowWidth
from workbench.recipes.recipe import Recipe
from workbench.training.evaluate import evaluate
from workbench.training.loop import Training

Build = Callable[..., Training]


def test_the_narrow_architecture() -> None:
    wide = PreLN(width=256, heads=8)
    narrow = GrowWidth(factor=4).architecture_at(wide, 0)
    assert (narrow.width, narrow.heads, narrow.inner_width) == (64, 2, 256)
    assert GrowWidth().architecture_at(wide, 1) == wide
    explicit = GrowWidth().architecture_at(PostLN(width=64, heads=4, ffn_width=96), 0)
    assert (explicit.width, explicit.heads, explicit.inner_width) == (32, 2, 48)
    inner = GrowWidth(what="ffn").architecture_at(wide, 0)
    assert (inner.width, inner.heads, inner.inner_width) == (256, 8, 512)


@pytest.mark.parametrize("what", ["width", "ffn"])
@pytest.mark.parametrize("state", ["reset", "copy"])
def test_the_model_widens_in_mid_run_and_goes_on_learning(tiny: Recipe, build: Build, what: str, state: str) -> None:
    depth = {"kind": "grow_width", "at": 0.5, "what": what, "state": state, "rewarm": 0.0}
    recipe = tiny.with_(architecture={"dropout": 0.0}, depth=depth, budget="40 steps", optimizer={"lr": 1e-2})
    training = build(recipe)
    narrow = training.model
    for _ in range(20):
        training.step()
    before = evaluate(recipe, training.assembled, training.assembled.heldout).loss
    parameters = training.assembled.parameters
    training.growth.advance(recipe, training.progress)
    training._take_over()
    assert training.model is not narrow
    assert training.assembled.parameters > 1.3 * parameters
    assert evaluate(recipe, training.assembled, training.assembled.heldout).loss == pytest.approx(before, abs=1e-5)
    # Every parameter has state, of its own shape, or none has.
    state_of = training.optimizer.state
    for name, p in training.model.named_parameters():
        assert (p in state_of) == (state == "copy"), name
        assert state == "reset" or state_of[p]["exp_avg"].shape == p.shape
    while not training.progress.done:
        training.step()
    assert evaluate(recipe, training.assembled, training.assembled.heldout).loss < before
    up = training.model.backbone.blocks[0].feed_forward.up.weight
    first, second = up.chunk(2)
    assert not torch.allclose(first, second, atol=1e-3), "copies part"


@pytest.mark.parametrize(
    ("knobs", "architecture", "why"),
    [
        ({}, {"positions": "alibi"}, r"depth\.kind: positions 'alibi' are constants .*use 'rope' or 'learned'"),
        ({}, {"positions": "sinusoidal"}, r"depth\.kind: positions 'sinusoidal'"),
        ({}, {"final_norm": False}, r"depth\.kind: pre_ln cannot be widened as it is"),
        ({"factor": 3}, {}, r"depth\.factor: 3 does not divide architecture\.width 32; use one of \[2, 4, 8, 16\]"),
        ({"factor": 4}, {"heads": 2}, r"depth\.factor: 4 does not divide architecture\.heads 2; use one of \[2\]"),
        ({}, {"heads": 1}, r"architecture\.heads 1, which no factor does"),
        ({}, {"ffn_width": 33}, r"depth\.factor: 2 does not divide architecture\.ffn_width 33"),
    ],
)
def test_what_cannot_be_widened(knobs: dict[str, object], architecture: dict[str, object], why: str) -> None:
    with pytest.raises(RecipeError, match=why):
        Recipe(
            depth={"kind": "grow_width", **knobs},
            architecture={"kind": "pre_ln", "width": 32, "heads": 4, **architecture},
        )


def test_inner_width_alone_grows_whatever_the_positions() -> None:
    Recipe(
        depth={"kind": "grow_width", "what": "ffn"}, architecture={"kind": "pre_ln", "heads": 1, "positions": "alibi"}
    )


@pytest.mark.parametrize("what", ["width", "ffn"])
def test_layers_of_transformers_are_not_widened(what: str) -> None:
    with pytest.raises(RecipeError, match=r"depth\.(kind|what): .*transformers"):
        Recipe(depth={"kind": "grow_width", "what": what}, architecture={"kind": "transformers", "model": "bert"})
