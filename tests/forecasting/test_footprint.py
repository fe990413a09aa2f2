"""Bytes by part: exact where shapes decide, against the real thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
import torch

from tests.choices.execution.test_memory_saving import LAYERS, gradients, recipe_of
from tests.choices.execution.test_memory_saving import VOCABULARY as SMALL
from tests.forecasting.test_trace import VOCABULARY, traced
from workbench import presets
from workbench.choices.architectures.flops import count_parameters
from workbench.choices.choice import registry
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution import MemoryPlan
from workbench.choices.execution.memory_fit import LOOSE
from workbench.forecasting.footprint import COMPILER_BYTES, Footprint, footprint, optimizer_bytes, sizes
from workbench.forecasting.meta_tensors import ModelSpec, meta_model
from workbench.forecasting.trace import trace
from workbench.recipes.recipe import Recipe
from workbench.training.loop import Training


@pytest.mark.parametrize("kind", sorted(registry("optimizer")))
def test_optimizer_state_is_what_training_makes(kind: str, tiny: Recipe, build: Callable[..., Training]) -> None:
    recipe = tiny.with_(optimizer={"kind": kind, "lr": 1e-3})
    training = build(recipe)
    for _ in range(2):
        training.step()
    states = training.optimizer.state.values()
    real = sum(t.numel() * t.element_size() for state in states for t in state.values() if torch.is_tensor(t))
    vocabulary = training.assembled.vocabulary
    spec = ModelSpec(recipe.architecture, recipe.objective, vocabulary, recipe.data.longest)
    said = optimizer_bytes(recipe.optimizer, spec)
    # Whether a step is counted on the device or on the host is eight bytes per tensor.
    assert said == pytest.approx(real, rel=0.002)
    if recipe.optimizer.moments:
        small = build(recipe.with_(execution={"optimizer_states": "8bit"}))
        for _ in range(2):
            small.step()
        states = small.optimizer.state.values()
        real = sum(t.numel() * t.element_size() for state in states for t in state.values() if torch.is_tensor(t))
        assert optimizer_bytes(recipe.optimizer, spec, small.engine.memory) == pytest.approx(real, rel=0.01)
        assert real < 0.6 * said
    found = sizes(spec)
    assert found.parameters == training.assembled.parameters
    matrices = sum(numbers for numbers, _ in found.matrices)
    assert matrices < sum(found.by_layer) < found.parameters
    assert found.tables + matrices < found.parameters


@pytest.mark.parametrize(
    "architecture",
    [
        {"layers": 7, "local_window": 16, "global_every": 3},
        {"layers": 1},
        {"kind": "post_ln", "layers": 5, "width": 48, "heads": 2},
        {"kind": "transformers", "model": "bert", "layers": 4, "width": 32, "heads": 2},
        # Its first layer has no norm before its attention.
        {"kind": "transformers", "model": "modernbert", "layers": 5, "width": 32, "heads": 2},
    ],
)
def test_a_short_model_tells_the_sizes_of_a_deep_one(architecture: dict[str, Any]) -> None:
    recipe = presets.fast().with_(architecture=architecture)
    spec = ModelSpec(recipe.architecture, recipe.objective, VOCABULARY, 64)
    whole, found = meta_model(spec), sizes(spec)
    assert found.parameters == count_parameters(whole)
    assert found.by_layer == tuple(count_parameters(block) for block in whole.backbone.blocks)
    groups = {group["role"]: group["params"] for group in whole.parameter_groups(0.0)}
    assert found.vectors == len(groups["vector"])


def _footprint(recipe: Recipe, plan: LayerPlan, parts: int = 1, rows: int = 4, heap: bool = False) -> Footprint:
    size = sizes(ModelSpec(recipe.architecture, recipe.objective, VOCABULARY, recipe.data.longest))
    return footprint(traced(recipe, rows), size, 1000, plan, parts, False, heap)


def test_frozen_layers_below_keep_nothing_and_have_no_gradients() -> None:
    recipe = presets.fast()
    full = _footprint(recipe, LayerPlan.full(4))
    plan = LayerPlan((True,) * 4, (1.0,) * 4, (False, False, True, True), (1.0,) * 4, 4, embedding=False)
    frozen = _footprint(recipe, plan)
    assert frozen.activations < 0.7 * full.activations
    assert frozen.gradients < full.gradients
    assert frozen.weights == full.weights


def test_more_rows_and_more_micro_batches_take_more() -> None:
    recipe, plan = presets.fast(), LayerPlan.full(4)
    one = _footprint(recipe, plan)
    assert _footprint(recipe, plan, rows=32).peak > one.peak
    assert _footprint(recipe, plan, parts=2).peak >= one.peak
    heap = _footprint(recipe, plan, heap=True)
    assert heap.peak > sum(part for name, part in asdict(heap).items() if name != "peak")


def test_a_cpus_heap_has_gaps_where_sizes_move_and_holds_the_compiler() -> None:
    recipe, plan = presets.fast(), LayerPlan.full(4)
    size = sizes(ModelSpec(recipe.architecture, recipe.objective, VOCABULARY, recipe.data.longest))

    def peak(**how: bool) -> int:
        asked = {"compiled": False, "heap": True, "moving": False, **how}
        return footprint(traced(recipe), size, 1000, plan, 1, **asked).peak

    steady = footprint(traced(recipe), size, 1000, plan, 1, False, True)
    assert peak(moving=True) - peak() == pytest.approx((2 - LOOSE) * (steady.activations + steady.logits), abs=2)
    # What compiled code keeps is less; what compiles it is more.
    assert peak(compiled=True) < peak() + COMPILER_BYTES
    assert peak(heap=False, moving=True) == peak(heap=False)


@pytest.mark.parametrize("way", ["off", "layers", "attention", "activation", "dropout", "operations"])
def test_recomputation_is_forecast_as_it_is_measured(way: str) -> None:
    recipe, full = recipe_of({"kind": "post_ln"}, recompute=way), LayerPlan.full(LAYERS)
    plan, rows, length = recipe.engine().memory, 4, 32
    _, kept, _ = gradients(recipe, full)
    shape = ModelSpec(recipe.architecture, recipe.objective, SMALL, length, operations=plan.operations)
    found, size = trace(shape, rows, length, torch.bfloat16), sizes(shape)
    stream = 4 * rows * length * recipe.architecture.width
    said = footprint(found, size, 1000, full, 1, False, True, memory=plan, stream=stream)
    # What is whole at a time while it goes backward is no part of what is kept.
    twice = found.layers[0].kept if way == "layers" else 0
    assert said.activations - twice == pytest.approx(kept.total - found.head.kept, rel=0.1)


def test_bf16_weights_and_8_bit_states_are_in_the_sum() -> None:
    recipe, full = recipe_of({"kind": "post_ln"}), LayerPlan.full(LAYERS)
    shape = ModelSpec(recipe.architecture, recipe.objective, SMALL, 32)
    found, size = trace(shape, 4, 32, torch.bfloat16), sizes(shape)
    whole = footprint(found, size, 1000, full, 2, False, False)
    low = footprint(found, size, 1000, full, 2, False, False, memory=MemoryPlan(weights="bf16"))
    matrices = sum(numbers for numbers, _ in size.matrices)
    assert low.weights - whole.weights == 2 * (matrices + size.tables)
    assert whole.activations - low.activations == 2 * matrices
    assert low.peak < whole.peak
