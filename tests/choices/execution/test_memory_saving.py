"""Knobs of memory on whole models: what is computed again gives the same gradients and keeps less."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from workbench.base.errors import RecipeError
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.memory_plan import OPERATIONS, MemoryPlan
from workbench.choices.progress import Progress
from workbench.ops.recompute import KeptBytes
from workbench.recipes.recipe import Recipe
from workbench.training.assemble import build_model

VOCABULARY = Vocabulary(size=128, used=120, cls=1, sep=2, mask=3, pad=0, unk=4)
LAYERS = 4
WAYS = [
    {"recompute": "layers"},
    {"recompute": "layers", "recompute_every": 2},
    *({"recompute": name} for name in sorted(OPERATIONS)),
    {"recompute": "operations"},
]


def recipe_of(architecture: dict[str, object], **execution: object) -> Recipe:
    size = {"layers": LAYERS, "width": 32, "heads": 2}
    native = {"device": "cpu", "precision": "bf16", "compile": False, "attention": "plain", "threads": 1}
    return Recipe(
        architecture={**size, **architecture},
        data={"kind": "embedded", "sequence_length": 32, "batch_size": 4},
        execution={"kind": "native", **native, **execution},
    )


def gradients(recipe: Recipe, plan: LayerPlan, compiled: bool = False) -> tuple[list[Tensor | None], KeptBytes, float]:
    """Return one pass's gradients, kept bytes by block and loss."""
    engine = recipe.engine()
    model = build_model(recipe, recipe.architecture, VOCABULARY, engine)
    if compiled:
        engine.compile(model)
    generator = torch.Generator().manual_seed(1)
    tokens_BT = torch.randint(5, 120, (4, 32), generator=generator)
    places_BT = torch.arange(32).expand(4, 32)
    batch = Batch(tokens_BT, places_BT, (places_BT >= 20).int(), torch.arange(4))
    torch.manual_seed(7)
    count = KeptBytes()
    with count.counting(model, list(model.backbone.blocks)):
        found = engine.forward(model, batch, plan, Progress(0, 0, 0.0, recipe.budget))
    loss = found.over(model.counts(batch, Progress(0, 0, 0.0, recipe.budget)))
    engine.backward(loss)
    return [p.grad for p in model.parameters()], count, float(loss.detach())


PLANS = {
    "all": LayerPlan.full(LAYERS),
    "one dropped": LayerPlan(
        (True, False, True, True), (1.0, 1.0, 2.0, 0.5), (True,) * LAYERS, (1.0,) * LAYERS, LAYERS
    ),
    "frozen below": LayerPlan((True,) * LAYERS, (1.0,) * LAYERS, (False, False, True, True), (1.0,) * LAYERS, LAYERS),
    "not grown yet": LayerPlan((True,) * 2, (1.0,) * 2, (True,) * 2, (1.0,) * 2, LAYERS),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, way.values())))
@pytest.mark.parametrize(
    "architecture",
    [
        {"kind": "pre_ln", "dropout": 0.1, "ffn": "geglu", "local_window": 8},
        {"kind": "post_ln", "dropout": 0.1},
        {"kind": "transformers", "model": "bert", "pretrained": False},
    ],
    ids=["pre_ln", "post_ln", "transformers"],
)
def test_gradients_are_those_without(architecture: dict[str, object], way: dict[str, object], plan: LayerPlan) -> None:
    """With dropout: the same masks. Whatever layers are dropped, scaled, frozen or not there yet."""
    if architecture["kind"] == "transformers" and way["recompute"] != "layers":
        with pytest.raises(RecipeError, match=r"needs blocks of this package.*use 'layers'"):
            recipe_of(architecture, **way)
        return
    whole, much, loss = gradients(recipe_of(architecture), plan)
    again, less, same = gradients(recipe_of(architecture, **way), plan)
    assert loss == same
    for ours, theirs in zip(again, whole, strict=True):
        if theirs is None:
            assert ours is None
        else:
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)
    assert less.total < much.total


def test_layers_keep_their_input_and_operations_what_is_between() -> None:
    architecture = {"kind": "post_ln", "dropout": 0.1}
    full = LayerPlan.full(LAYERS)
    of = {way: gradients(recipe_of(architecture, recompute=way), full)[1] for way in ("off", "layers", *OPERATIONS)}
    off = of["off"].inside
    every = gradients(recipe_of(architecture, recompute="layers", recompute_every=2), full)[1].inside
    assert of["layers"].inside == [0] * LAYERS
    assert [kept == 0 for kept in every] == [True, False, True, False]
    # B x H x T x T probabilities in float32 and bf16, and their mask; F = 128 numbers of an activation in bf16.
    probabilities, activations = 4 * 2 * 32 * 32, 4 * 32 * 128
    assert off[1] - of["attention"].inside[1] >= probabilities * (4 + 2)
    # And the copy of the second product's weight in bf16.
    assert off[1] - of["activation"].inside[1] >= activations * 2
    assert off[1] - of["dropout"].inside[1] >= 2 * 4 * 32 * 32 * 2


@pytest.mark.extended
@pytest.mark.usefixtures("graphs_alone")
def test_compiled_blocks_do_so_too() -> None:
    architecture, full = {"kind": "pre_ln"}, LayerPlan.full(LAYERS)

    def found(**way: object) -> Any:
        return gradients(recipe_of(architecture, compile=True, precision="fp32", **way), full, compiled=True)

    whole, much, _ = found()
    for way in ("layers", "operations"):
        again, less, _ = found(recompute=way)
        for ours, theirs in zip(again, whole, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
        # At least the probabilities, B x H x T x T in float32.
        assert less.total <= much.total - LAYERS * 4 * 2 * 32 * 32 * 4, way


def test_a_plan_says_which_layers() -> None:
    assert [layer for layer in range(7) if MemoryPlan("layers", 3).recomputes(layer)] == [0, 3, 6]
    assert not MemoryPlan("operations").recomputes(0)
    assert MemoryPlan("operations").operations == OPERATIONS
    assert MemoryPlan("attention").operations == {"attention"}
    assert MemoryPlan("layers").operations == MemoryPlan().operations == frozenset()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"recompute": "gelu"}, r"execution\.recompute.*'off', 'layers', 'attention'"),
        ({"recompute": "dropout", "compile": True}, r"'dropout' is what compiled blocks do by themselves; use 'atte"),
        ({"recompute": "operations", "recompute_every": 2}, r"recompute_every: 2 is for recompute 'layers'; leave"),
    ],
)
def test_what_cannot_be_computed_again_is_refused(change: dict[str, object], why: str) -> None:
    with pytest.raises(RecipeError, match=why):
        recipe_of({"kind": "pre_ln"}, **change)


def test_a_budget_has_an_end() -> None:
    # Found by the fuzzer: bytes of it were no number any more.
    with pytest.raises(RecipeError, match=r"execution\.memory_gib: .*1048576"):
        Recipe(execution={"kind": "native", "recompute": "layers", "micro_batch_size": "auto", "memory_gib": 1e300})
