"""The trace against formulas and against real tensors: products, labels, kept bytes, parts."""

from __future__ import annotations

import copy

import pytest
import torch

from workbench import presets
from workbench.choices.architectures.flops import layer_flops
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution import Mode
from workbench.choices.progress import Budget, Progress
from workbench.forecasting.meta_tensors import ModelSpec, meta_model
from workbench.forecasting.operations import Part, Trace
from workbench.forecasting.trace import shortened, trace
from workbench.recipes.recipe import Recipe

VOCABULARY = Vocabulary(512, 512, 1, 2, 3, 0, 4)


def traced(recipe: Recipe, rows: int = 4, precision: str = "fp32", attention: str = "plain") -> Trace:
    length = recipe.data.longest
    dtype = Mode("cpu", 1, precision, False).dtype
    return trace(ModelSpec(recipe.architecture, recipe.objective, VOCABULARY, length, attention), rows, length, dtype)


def product_flops(part: Part) -> float:
    return sum(operation.flops for operation in part.forward + part.backward)


@pytest.mark.parametrize("name", ["fast", "bert", "gpt_tiny", "llama_like"])
def test_products_of_a_layer_are_those_of_the_formula(name: str) -> None:
    recipe = presets.get(name).with_(data={"sequence_length": 64})
    found = traced(recipe)
    expected = layer_flops(recipe.architecture, LayerPlan.full(4), 64.0)[0] * 4 * 64
    assert product_flops(found.layers[0]) == pytest.approx(expected, rel=1e-6)


def test_products_of_a_transformers_layer() -> None:
    architecture = {"kind": "transformers", "model": "bert", "layers": 3, "width": 64, "heads": 2}
    recipe = presets.fast().with_(architecture=architecture, data={"sequence_length": 32})
    expected = layer_flops(recipe.architecture, LayerPlan.full(3), 32.0)[0] * 4 * 32
    assert product_flops(traced(recipe).layers[0]) == pytest.approx(expected, rel=1e-6)


def test_fused_attention_counts_as_the_written_out_one_but_for_what_it_repeats() -> None:
    recipe = presets.fast()
    plain, fused = (product_flops(traced(recipe, attention=name).layers[0]) for name in ("plain", "sdpa"))
    # softmax(q k) is computed once more on the way back: one product of seven.
    assert 1.0 < fused / plain < 1.1


def test_labels_are_counted_and_the_last_layer_computes_them_only() -> None:
    found = traced(presets.fast().with_(objective={"mask_rate": 0.25}))
    assert found.labels == 4 * 16
    assert product_flops(found.last) < 0.7 * product_flops(found.layers[0])


def test_kept_bytes_are_those_of_a_real_forward_pass() -> None:
    recipe = presets.fast().with_(architecture={"layers": 2, "width": 64, "heads": 2})
    found = traced(recipe)
    model = copy.deepcopy(meta_model(ModelSpec(recipe.architecture, recipe.objective, VOCABULARY, 64))).to_empty(
        device="cpu"
    )
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            # Held, so that no address is used twice.
            kept[storage.data_ptr()] = storage
        return tensor

    ids = torch.full((4, 64), 7)
    batch = Batch(ids, torch.arange(64).repeat(4, 1), torch.zeros(4, 64, dtype=torch.int32), torch.arange(4))
    start = Progress(step=0, tokens=0, seconds=0.0, budget=Budget())
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(batch, LayerPlan.full(2), start)
    assert found.kept_below_head + found.head.kept == pytest.approx(sum(s.nbytes() for s in kept.values()), rel=0.01)


def test_kept_bytes_grow_with_rows_and_shrink_with_precision() -> None:
    few, many, half = traced(presets.fast(), 4), traced(presets.fast(), 8), traced(presets.fast(), 8, "bf16")
    assert many.layers[0].kept == pytest.approx(2 * few.layers[0].kept, rel=0.02)
    assert half.layers[0].kept < many.layers[0].kept
    assert many.layers[0].kept_products < many.layers[0].kept


@pytest.mark.parametrize(
    ("layers", "window", "every", "short", "runs", "twins"),
    [
        (6, None, 3, 3, (False, True, True), (0, 1, 1, 1, 1, 2)),
        (2, None, 3, 2, (True, True), (0, 1)),
        # Global layers are 0, 3, 6: the last of six is local, the last of seven global.
        (6, 32, 3, 5, (False, False, True, True, True), (0, 1, 1, 3, 1, 4)),
        (7, 32, 3, 7, (False, False, False, True, False, True, True), (0, 1, 1, 3, 1, 1, 6)),
        (2, 32, 2, 2, (True, True), (0, 1)),
    ],
)
def test_a_short_model_has_one_of_each_sort(
    layers: int, window: int | None, every: int, short: int, runs: tuple[bool, ...], twins: tuple[int, ...]
) -> None:
    architecture = presets.fast().architecture.model_copy(
        update={"layers": layers, "local_window": window, "global_every": every}
    )
    found = shortened(architecture)
    assert (found.architecture.layers, found.runs, found.twins) == (short, runs, twins)
    for layer in range(layers - 1):
        assert found.sorts[found.representative(layer)] == found.sorts[layer]


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_a_deep_model_costs_what_its_layers_cost_one_by_one(layers: int) -> None:
    change = {"layers": layers, "local_window": 16, "global_every": 2}
    recipe = presets.fast().with_(architecture=change, data={"sequence_length": 128})
    found = traced(recipe)
    one_by_one = sum(layer_flops(recipe.architecture, LayerPlan.full(layers), 128.0, found.labels / 512)) * 512
    # The formula counts what a window lets through, a mask computes all of it.
    inner = sum(product_flops(found.layers[sort]) for sort in found.sorts) + product_flops(found.last)
    assert inner >= one_by_one
    assert found.layers == () or len(found.layers) == len(set(found.sorts))


def test_one_layer_is_the_last() -> None:
    found = traced(presets.fast().with_(architecture={"layers": 1}))
    assert (found.layers, found.sorts) == ((), ())
    assert found.last.forward


def test_a_trace_does_not_change_what_others_see() -> None:
    recipe = presets.fast()
    first = traced(recipe)
    trace_of_others = traced(recipe.with_(architecture={"layers": 9}))
    assert trace_of_others.layers == first.layers
    assert trace_of_others.sorts == (0,) * 8
    assert all(
        p.is_meta for p in meta_model(ModelSpec(recipe.architecture, recipe.objective, VOCABULARY, 64)).parameters()
    )
