"""Stacks of users' models: found, put under a plan, left as they were."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from workbench.accelerated.stack import OwnBackbone, Watched, stack_named
from workbench.base.errors import RecipeError
from workbench.choices.architectures.transformers_layer import equal_layers
from workbench.choices.depth.plan import LayerPlan


class Chain(nn.Module):
    """Residual layers in a list, each with a list of its own within."""

    def __init__(self, layers: int = 3) -> None:
        super().__init__()
        self.small = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.sequence = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.sequence(x)


class Layer(nn.Module):
    """x plus two experts."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x + sum(expert(x) for expert in self.experts)


def test_the_outer_list_with_the_most_weights_comes_first() -> None:
    assert list(equal_layers(Chain())) == ["layers", "small"]
    assert equal_layers(nn.Sequential(nn.Linear(4, 4))) == {}


def test_a_stack_is_named() -> None:
    assert len(list(stack_named(Chain(), "sequence").children())) == 2
    with pytest.raises(RecipeError, match="did you mean 'layers'"):
        stack_named(Chain(), "layer")
    with pytest.raises(RecipeError, match=r"'layers.0' is a Layer; name a torch.nn.ModuleList"):
        stack_named(Chain(), "layers.0")


def plan(*runs: bool, trains: tuple[bool, ...] = (True, True, True)) -> LayerPlan:
    return LayerPlan.full(3, runs=runs, trains=trains)


@pytest.mark.parametrize("compiled", [False, True])
def test_layers_run_as_the_plan_says_and_only_while_attached(compiled: bool) -> None:
    torch.manual_seed(0)
    model, x = Chain(), torch.randn(2, 4)
    whole, without_second = model(x), model.sequence(model.layers[2](model.layers[0](x)))
    backbone = OwnBackbone(model, list(model.layers))
    backbone.attach()
    if compiled:
        backbone.compile_blocks(backend="eager")
    backbone.begin(plan(True, False, True))
    before = model.layers[1].calls
    torch.testing.assert_close(model(x), without_second)
    assert model.layers[1].calls == before, "it was not even called"
    backbone.begin(plan(True, True, True))
    torch.testing.assert_close(model(x), whole)
    backbone.detach()
    torch.testing.assert_close(model(x), whole)
    assert not any("forward" in vars(layer) for layer in model.layers)


def test_scales_and_frozen_layers() -> None:
    model, x = Chain(), torch.randn(2, 4)
    model.sequence.requires_grad_(False)
    backbone = OwnBackbone(model, list(model.layers))
    backbone.attach()
    backbone.begin(LayerPlan.full(3), probing=True)
    with torch.no_grad():
        model(x)
    assert [planned.scaling for planned in backbone.planned] == ["branches"] * 3
    scaled = LayerPlan.full(3, scale=(2.0, 1.0, 1.0), trains=(False, True, True), head=False)
    backbone.begin(scaled)
    backbone.freeze_outside(scaled)
    first = x + 2 * sum(expert(x) for expert in model.layers[0].experts)
    expected = model.sequence(_plain(model.layers[2], _plain(model.layers[1], first)))
    out = model(x)
    torch.testing.assert_close(out, expected)
    out.sum().backward()
    graded = [any(p.grad is not None for p in layer.parameters()) for layer in model.layers]
    assert graded == [False, True, True]
    backbone.detach()
    assert all(p.requires_grad for p in model.layers.parameters())
    assert not any(p.requires_grad for p in model.sequence.parameters()), "as it was before"


def _plain(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x + sum(expert(x) for expert in layer.experts)  # type: ignore[union-attr]


def test_a_pass_is_watched() -> None:
    model = Chain()
    with Watched(list(model.layers)) as watched:
        model(torch.randn(2, 4))
    assert watched.problem() == ""
    assert watched.flops == [2 * 2 * 2 * 16.0] * 3
    assert watched.total == sum(watched.flops) + 2 * 2 * 16
    with Watched(list(model.small)) as watched:
        model(torch.randn(2, 4))
    assert watched.problem() == "of 2 layers a pass calls none, and not each of them once, in their order"
