"""A step in one graph: same loss, gradients and telemetry as block by block; what it cannot carry out is refused."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

from tests.choices.objectives.test_layout import uneven
from tests.choices.objectives.test_token_prediction import VOCABULARY
from workbench.base.errors import RecipeError
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.native import NativeEngine
from workbench.choices.execution.whole_step import WholeStep
from workbench.choices.objectives.objective import Builder, TrainingModel
from workbench.choices.progress import Budget, Progress
from workbench.recipes.recipe import Recipe

SMALL = {"kind": "pre_ln", "layers": 2, "width": 32, "heads": 2}
START = Progress(0, 0, 0.0, Budget())
PLAN = LayerPlan.full(2)


def recipe_of(**execution: Any) -> Recipe:
    native = {"device": "cpu", "precision": "fp32", "attention": "plain"}
    return Recipe().with_(architecture=SMALL, execution={**native, **execution})


def built(recipe: Recipe, device: str = "cpu") -> TrainingModel:
    torch.manual_seed(0)
    builder = Builder(recipe.architecture, VOCABULARY, 24, causal=recipe.objective.causal)
    return recipe.objective.build(builder).to(device)


def passes(engine: NativeEngine, model: TrainingModel) -> list[torch.Tensor]:
    """Loss, accuracy, RMS of layers and gradients of one step, as numbers of their own."""
    model.backbone.taps = []
    result = engine.forward(model, uneven().to(engine.device), PLAN, START)
    loss = result.over(model.counts(uneven(), START))
    engine.backward(loss)
    found = [loss.detach(), result.metrics["accuracy"], *model.backbone.taps]
    found += [p.grad for p in model.parameters() if p.grad is not None]
    model.backbone.taps = None
    model.zero_grad(set_to_none=True)
    return [tensor.cpu().clone() for tensor in found]


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> CompileCounterWithBackend:
    """Counts graphs; a compiler that writes no code, and so takes no time."""
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=counter))
    return counter


@pytest.mark.extended
@pytest.mark.parametrize("objective", ["masked", "causal"])
def test_one_graph_gives_what_the_blocks_give(objective: str, counter: CompileCounterWithBackend) -> None:
    blocks, whole = (recipe_of(**knobs).with_(objective=objective) for knobs in ({}, {"compile_scope": "step"}))
    expected = passes(blocks.engine(), built(blocks))
    assert counter.frame_count == 0, "not compiled yet"
    engine, model = whole.engine(), built(whole)
    engine.compile(model)
    for _ in range(2):
        found = passes(engine, model)
        assert len(found) == len(expected) == 2 + 2 + len(list(model.parameters()))
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    assert counter.frame_count == 1, "one graph, used twice"
    # Without telemetry of layers, and without taps, it is the same graph.
    engine.forward(model, uneven(), PLAN, START)
    assert counter.frame_count == 1


@pytest.mark.extended
def test_a_rate_that_moves_costs_one_more_graph(counter: CompileCounterWithBackend) -> None:
    recipe = recipe_of(compile_scope="step").with_(
        objective={"mask_rate": {"kind": "linear", "start": 0.6, "end": 0.1}}
    )
    engine, model = recipe.engine(), built(recipe)
    engine.compile(model)
    for step in (0, 20, 40, 60, 80):
        engine.forward(model, uneven(), PLAN, Progress(step, 0, 0.0, Budget(amount=100)))
    assert counter.frame_count == 2


@pytest.mark.parametrize("scope", ["step", "graphs"])
@pytest.mark.parametrize("depth", ["progressive_drop", "stacking", "freeze"])
def test_methods_that_change_layers_are_refused_by_name(scope: str, depth: str) -> None:
    with pytest.raises(RecipeError, match=rf"compile_scope: '{scope}' compiles all layers.*depth '{depth}' .*use 'bl"):
        Recipe().with_(depth=depth, execution={"compile_scope": scope})
    Recipe().with_(depth=depth)


def test_graphs_are_refused_without_a_gpu_and_for_shapes_that_move() -> None:
    with pytest.raises(RecipeError, match=r"compile_scope: 'graphs' are CUDA's, and execution\.device is 'cpu'"):
        recipe_of(compile_scope="graphs")
    if not torch.cuda.is_available():
        with pytest.raises(RecipeError, match=r"compile_scope: 'graphs' are CUDA's, and there is no CUDA device here"):
            Recipe().with_(execution={"compile_scope": "graphs"}).engine()
    falling = {"kind": "linear", "start": 0.3, "end": 0.15, "length": 1e6, "over": "tokens"}
    changes: dict[str, Any] = {
        "objective.mask_rate": {"objective": {"mask_rate": falling}},
        "data.batch_size": {"data": {"batch_size": {"kind": "linear", "start": 16, "end": 32}}},
        "execution.padding": {"execution": {"padding": "kept"}},
    }
    for name, change in changes.items():
        graphs = Recipe().with_(execution={"compile_scope": "graphs"})
        with pytest.raises(RecipeError, match=rf"captured for one shape, and {name} would change it"):
            graphs.with_(**change)


def test_a_scope_without_compilation_is_no_silent_setting() -> None:
    with pytest.raises(RecipeError, match=r"compile_scope: 'step' says what is compiled, and execution\.compile is of"):
        recipe_of(compile=False, compile_scope="step")
    # As ever: on or off.
    assert not recipe_of(compile=False).engine().compiled
    assert recipe_of().with_assignments(["execution.compile=false"]).engine().described()["compiled"] == "off"
    assert recipe_of(compile_scope="step").engine().described()["compiled"] == "step"
    assert recipe_of(compile_scope="step").engine().assumptions() == [
        "execution.compile_scope 'step' is priced as 'blocks'"
    ]


def test_an_objective_of_its_own_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"compile_scope: a TrainingModel has no whole step; use 'blocks'"):
        WholeStep(captured=False).add(TrainingModel())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_captured_steps_give_what_the_blocks_give() -> None:
    """Over several steps of two micro-batches each: replays must not write over what is still read."""
    results = []
    for scope in ("blocks", "graphs"):
        recipe = Recipe().with_(
            architecture=SMALL, execution={"device": "cuda", "precision": "fp32", "compile_scope": scope}
        )
        engine, model = recipe.engine(), built(recipe, "cuda")
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
        engine.compile(model)
        losses = []
        for _ in range(6):
            for _ in range(2):
                loss = engine.forward(model, uneven().to("cuda"), PLAN, START)
                share = loss.over({"loss": 2 * model.counts(uneven(), START)["loss"]})
                engine.backward(share, 2)
                losses.append(share.detach())
            engine.step(optimizer)
        results.append(torch.stack(losses).cpu())
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)
