"""MSLT: what trains when, frozen layers untouched bit for bit, copies, knobs, the cost of the whole schedule."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from workbench import presets
from workbench.base.errors import RecipeError
from workbench.choices.architectures.flops import step_flops
from workbench.choices.choice import registry
from workbench.choices.depth.multi_stage import MultiStage
from workbench.choices.depth.plan import STATES, LayerPlan
from workbench.choices.progress import Budget, Progress
from workbench.recipes.recipe import Recipe
from workbench.training.loop import Training

Build = Callable[..., Training]


def at(step: int, steps: int = 100) -> Progress:
    return Progress(step, 0, 0.0, Budget(amount=steps))


def words(plan: LayerPlan) -> str:
    """One letter per layer."""
    return "".join({"absent": "."}.get(STATES[code], STATES[code][0]) for code in plan.states)


def test_stages_by_default() -> None:
    plans = [MultiStage().plan(12, at(step), seed=0) for step in (0, 30, 55, 70, 80, 99)]
    assert [words(plan) for plan in plans] == [
        "rrr.........", "fffccc......", "ffffffccc...", "fffffffffccc", "rrrrrrrrrrrr", "rrrrrrrrrrrr",
    ]  # fmt: skip
    assert [MultiStage().stage(12, at(step)) for step in (0, 29, 30, 54, 55, 69, 70, 79, 80)] == [
        0, 0, 1, 1, 2, 2, 3, 3, 4,
    ]  # fmt: skip


def test_uneven_stages_and_no_joint_one() -> None:
    choice = MultiStage(shares=(1, 1, 1), layers_added=(1, 3, 2), joint=0.0)
    assert len(choice.starts()) == 3
    assert [words(choice.plan(6, at(step), seed=0)) for step in (0, 40, 70)] == ["r.....", "fccc..", "ffffcc"]
    # One layer to copy three times; then the top two of four.
    assert choice.transition(6, 1).sources == (0, 0, 0)
    assert choice.transition(6, 2).sources == (2, 3)


def test_cost_of_the_whole_schedule_at_twelve_layers() -> None:
    """FLOPs of the plans, head included: at least 2.05 times the tokens per FLOP of full depth (the paper: 2.1)."""
    architecture = presets.pld().architecture
    mslt, budget = MultiStage(), Budget(amount=1000)

    def flops(plan: LayerPlan) -> float:
        return step_flops(architecture, 4096, [plan], 1024, round(1024 * 0.225), 64.0)

    plans = [mslt.plan(12, Progress(step, 0, 0.0, budget), seed=0) for step in range(1000)]
    assert flops(LayerPlan.full(12)) / (sum(map(flops, plans)) / 1000) > 2.05


def test_the_rate_warms_up_in_every_stage() -> None:
    choice = MultiStage(rewarm=0.2)
    assert choice.rate_factor(12, at(0)) == 1.0
    assert [choice.rate_factor(12, at(step)) for step in (30, 31, 35)] == pytest.approx([0, 0.2, 1])


def state_of(training: Training, parameters: list[Tensor]) -> list[Tensor]:
    state = training.optimizer.state
    return [value.clone() for p in parameters for value in state[p].values() if isinstance(value, Tensor)]


@pytest.mark.parametrize("optimizer", registry("optimizer"))
def test_frozen_layers_and_their_state_stay_bit_for_bit(tiny: Recipe, build: Build, optimizer: str) -> None:
    depth = {"kind": "multi_stage", "shares": (1, 1), "joint": 0.2}
    recipe = tiny.with_(
        optimizer=optimizer,
        architecture={"layers": 4},
        depth=depth,
        execution={"micro_batch_size": 4},
        budget="15 steps",
    )
    training = build(recipe)
    blocks = training.model.backbone.blocks
    for _ in range(7):
        training.step()
    assert training.assembled.stage == 1
    below = [p for block in blocks[:2] for p in block.parameters()]
    above = [p for block in blocks[2:] for p in block.parameters()]
    weights, moments, top = [p.detach().clone() for p in below], state_of(training, below), above[0].detach().clone()
    assert moments, "the first stage has left state behind"
    buffers: list[bool] = []
    training.optimizer.register_step_pre_hook(lambda *_: buffers.append(any(p.grad is not None for p in below)))
    while training.progress.step < 12:
        training.step()
    assert buffers == [False] * 5
    assert all(torch.equal(p, weight) for p, weight in zip(below, weights, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(state_of(training, below), moments, strict=True))
    assert not torch.equal(above[0], top)
    for _ in range(3):
        training.step()
    assert training.assembled.stage == 2
    assert not any(torch.equal(p, weight) for p, weight in zip(below, weights, strict=True) if p.ndim == 2), "thawed"


@pytest.mark.parametrize(("initial", "state"), [("copy", "reset"), ("copy", "copy"), ("random", "reset")])
def test_new_layers(tiny: Recipe, build: Build, initial: str, state: str) -> None:
    depth = {"kind": "multi_stage", "shares": (1, 1), "initial": initial, "state": state}
    recipe = tiny.with_(architecture={"layers": 4}, depth=depth)
    training = build(recipe)
    blocks = training.model.backbone.blocks
    for _ in range(8):
        training.step()
    fresh = [p.detach().clone() for p in blocks[2].parameters()]
    training.growth.advance(recipe, training.progress)
    for new, old, was in zip(blocks[2].parameters(), blocks[0].parameters(), fresh, strict=True):
        assert torch.equal(new, old if initial == "copy" else was)
        assert (new in training.optimizer.state) == (state == "copy")
        if state == "copy":
            assert torch.equal(training.optimizer.state[new]["exp_avg"], training.optimizer.state[old]["exp_avg"])


@pytest.mark.parametrize("frozen", ["embedding", "head"])
def test_embedding_and_head_follow_their_knobs(tiny: Recipe, build: Build, frozen: str) -> None:
    depth = {"kind": "multi_stage", "shares": (1, 1), frozen: "frozen"}
    recipe = tiny.with_(architecture={"layers": 4, "head": "transform"}, depth=depth, budget="20 steps")
    training = build(recipe)
    model = training.model
    groups = {
        "embedding": [model.backbone.embedding.weight],
        "head": [*model.head.parameters(), *model.backbone.final.parameters()],
    }
    for _ in range(9):
        training.step()
    before = {name: [p.detach().clone() for p in group] for name, group in groups.items()}
    for _ in range(3):
        training.step()

    def moved(name: str) -> bool:
        return not any(torch.equal(p, was) for p, was in zip(groups[name], before[name], strict=True))

    assert {name: moved(name) for name in groups} == {name: name != frozen for name in groups}
    while not training.progress.done:
        training.step()
    assert all(moved(name) for name in groups), "in the joint stage everything trains"


@pytest.mark.parametrize(
    ("knobs", "layers", "why"),
    [
        ({}, 6, r"depth\.shares: 6 layers do not split into 4 equal parts; .*\[1, 2, 3, 6\].*layers 8.*layers_added"),
        ({"layers_added": (3, 3)}, 6, r"depth\.layers_added: \[3, 3\] must be 4 numbers"),
        ({"layers_added": (1, 1, 1, 1)}, 6, r"add up to architecture\.layers 6"),
        ({"shares": (1, 0)}, 4, r"depth\.shares: every stage needs a positive length"),
        ({"initial": "random", "state": "copy"}, 4, r"depth\.state: 'copy' needs layers to copy from"),
    ],
)
def test_stages_that_cannot_be(knobs: dict[str, object], layers: int, why: str) -> None:
    with pytest.raises(RecipeError, match=why):
        Recipe(depth={"kind": "multi_stage", **knobs}, architecture={"kind": "pre_ln", "layers": layers})
