"""Freezing from below: counts by schedule, frozen tensors untouched, the embedding's knob."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from workbench.base.errors import RecipeError
from workbench.choices.depth.freeze import Freeze
from workbench.choices.progress import Budget, Progress
from workbench.choices.schedules.linear import Linear
from workbench.recipes.recipe import Recipe
from workbench.training.loop import Training


def frozen_at(choice: Freeze, step: int, layers: int) -> int:
    plan = choice.plan(layers, Progress(step, 0, 0.0, Budget(amount=100)), seed=0)
    assert all(plan.runs)
    count = plan.trains.count(False)
    assert plan.trains == (False,) * count + (True,) * (layers - count)
    return count


def test_a_staircase_by_default() -> None:
    assert [frozen_at(Freeze(), step, 12) for step in (0, 39, 40, 60, 80, 99)] == [0, 0, 3, 6, 9, 9]


@pytest.mark.parametrize(("share", "layers", "count"), [(0.3, 10, 3), (0.29, 10, 2), (1.0, 4, 4), (0.0, 4, 0)])
def test_a_constant_share_rounds_down(share: float, layers: int, count: int) -> None:
    assert frozen_at(Freeze(share=share), 50, layers) == count


def test_a_falling_share_thaws() -> None:
    choice = Freeze(share=Linear(start=1.0, end=0.0))
    counts = [frozen_at(choice, step, 8) for step in range(0, 101, 10)]
    assert counts == sorted(counts, reverse=True)
    assert (counts[0], counts[-1]) == (8, 0)


@pytest.mark.parametrize("embedding", ["trains", "frozen"])
def test_frozen_tensors_and_their_state_stay_bit_for_bit(
    tiny: Recipe, build: Callable[..., Training], embedding: str
) -> None:
    share = {"kind": "stages", "values": (0.0, 0.67), "until": (0.5,)}
    training = build(
        tiny.with_(depth={"kind": "freeze", "share": share, "embedding": embedding}, execution={"micro_batch_size": 8})
    )
    for _ in range(10):
        training.step()
    model = training.model
    resting = [p for block in model.backbone.blocks[:2] for p in block.parameters()]
    matrix = model.backbone.embedding.weight
    resting += [matrix] if embedding == "frozen" else []
    weights = [p.detach().clone() for p in resting]
    moments = [training.optimizer.state[p]["exp_avg"].clone() for p in resting]
    before = matrix.detach().clone()
    gradients = []
    training.optimizer.register_step_pre_hook(lambda *_: gradients.append([p.grad for p in resting]))
    for _ in range(5):
        training.step()
    assert gradients == [[None] * len(resting)] * 5
    for p, weight, moment in zip(resting, weights, moments, strict=True):
        assert torch.equal(p, weight)
        assert torch.equal(training.optimizer.state[p]["exp_avg"], moment)
        assert training.optimizer.state[p]["step"] == 10
    assert torch.equal(matrix, before) == (embedding == "frozen"), "a tied head trains the matrix by itself"


def test_with_every_layer_frozen_the_head_still_learns(tiny: Recipe, build: Callable[..., Training]) -> None:
    training = build(tiny.with_(depth={"kind": "freeze", "share": 1.0, "embedding": "frozen"}))
    before = {name: p.detach().clone() for name, p in training.model.named_parameters()}
    for _ in range(3):
        training.step()
    moved = {name for name, p in training.model.named_parameters() if not torch.equal(p, before[name])}
    assert moved == {"backbone.final.weight"}


def test_a_model_of_which_nothing_trains_is_refused(tiny: Recipe) -> None:
    bare = {"kind": "pre_ln", "final_norm": False, "head": "linear", "tied": True, "bias": False}
    frozen = {"kind": "freeze", "share": {"kind": "linear", "start": 0.0, "end": 1.0}, "embedding": "frozen"}
    with pytest.raises(RecipeError, match=r"depth\.share: reaches 1, .* nothing is left to train"):
        tiny.with_(architecture=bare, depth=frozen)
    tiny.with_(architecture={**bare, "final_norm": True}, depth=frozen)
