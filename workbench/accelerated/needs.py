"""Check before anything starts that a user's model has what a depth method needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from workbench.accelerated.model import Look, LossFunction, OwnTraining, loss_of_model, quiet
from workbench.accelerated.stack import OwnBackbone, stack_named
from workbench.base.errors import RecipeError
from workbench.choices.architectures.architecture import copies, uncopied
from workbench.choices.architectures.transformers_layer import equal_layers
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.own import OwnModel
from workbench.choices.progress import LOOK_AHEAD, Budget, progress_at
from workbench.recipes.recipe import Recipe

_SEVERAL = 0.5
"""Two lists of layers, of which the smaller has this share of the other's weights, are equally well meant."""


def plans_of(depth: Any, layers: int, budget: Budget) -> Iterator[LayerPlan]:
    """Yield the plans of a method for so many layers, at points spread over the budget."""
    for point in range(LOOK_AHEAD):
        yield depth.plan(layers, progress_at(budget, point / LOOK_AHEAD), 0)


def needs_stack(depth: Any) -> bool:
    """Return True if a method ever leaves out or freezes a layer."""
    # Of a model of many layers: with one, a method that drops some has nothing to drop.
    return len(depth.starts()) > 1 or any(plan != LayerPlan.full(12) for plan in plans_of(depth, 12, Budget()))


def check_width(depth: Any) -> None:
    """Refuse a method that makes the model itself wider.

    Raises:
        RecipeError: it does.
    """
    model = OwnModel(layers=12)
    if any(depth.architecture_at(model, stage) != model for stage in range(len(depth.starts()))):
        raise RecipeError(
            f"depth: '{depth.kind}' trains models of several widths, and yours cannot be built in another one; use a "
            "method of layers, for example 'progressive_drop', or depth 'full'"
        )


def find_stack(model: nn.Module, named: str | None, depth: Any) -> tuple[str, list[nn.Module]]:
    """Name and layers of the stack that a plan is carried out on; of a model without one, empty and the model itself.

    Args:
        named: by the user; None for the list of layers with the most weights.

    Raises:
        RecipeError: there is no such stack, none although ``depth`` needs one, or several of equal rights.
    """
    if named is not None:
        if not isinstance(named, str):
            raise RecipeError(f"layers: the name of a module is needed, got {type(named).__name__}")
        return named, list(stack_named(model, named).children())
    found, kind = equal_layers(model), type(model).__name__
    if not needs_stack(depth):
        name = next(iter(found), "")
        return name, list(found[name]) if found else [model]
    sequences = [name for name, module in model.named_modules() if isinstance(module, nn.Sequential) and name]
    sizes = {name: sum(p.numel() for p in layers.parameters()) for name, layers in found.items()}
    rivals = [name for name, size in sizes.items() if size >= _SEVERAL * max(sizes.values())]
    if len(rivals) != 1:
        has = f"has several stacks, {', '.join(map(repr, rivals))}" if rivals else "has no list of layers of one class"
        name = next(iter(rivals or sequences), "...")
        raise RecipeError(
            f"depth: '{depth.kind}' decides layer by layer, and {kind} {has}; name one, as in layers='{name}', or use "
            "depth 'full'"
        )
    return rivals[0], list(found[rivals[0]])


def check_depth(
    depth: Any, model: nn.Module, loss: LossFunction, path: str, layers: list[nn.Module], look: Look
) -> None:
    """Refuse a depth method that cannot be carried out on these layers.

    Args:
        path: of the stack, for the message.
        look: what a first pass told.

    Raises:
        RecipeError: layers that cannot be left out, copied, scaled or widened as the method wants.
    """
    if not needs_stack(depth):
        return
    plans = list(plans_of(depth, len(layers), Budget()))
    leanest = min(plans, key=lambda plan: sum(plan.runs))
    skips = any(plan.layers < plan.total or min(plan.keep) < 1 or not all(plan.runs) for plan in plans)
    scales = any(scale != 1 for plan in plans for scale in plan.scale)
    why = look.problem
    for source, layer in copies(depth, len(layers)):
        if missing := uncopied(layers[source], layers[layer]):
            why = why or f"layer {layer + 1} cannot copy layer {source + 1}, which has no {missing[0]} of its shape"
    if skips:
        why = why or look.change
    if sum(leanest.runs) < len(layers):
        why = why or _failure(model, loss, layers, look, leanest)
    if scales and not why and (unscaled := _unscaled(model, loss, layers, look)):
        why = (
            f"it scales what a layer adds to its input, and a {unscaled} neither adds to its input nor ends in a norm; "
            "set depth.rescale to false (depth.scaling to 'none')"
        )
    if why:
        raise RecipeError(
            f"depth: '{depth.kind}' cannot be carried out on the layers '{path}' of {type(model).__name__}: {why}; "
            "name another list of layers with layers=..., or use depth 'full'"
        )


def check_execution(recipe: Recipe, look: Look) -> None:
    """Refuse an execution that a model like this one cannot be trained under, by asking its engine with a tiny one.

    Raises:
        RecipeError: the device is not there, or the engine needs a Python of its own, or more of a model than its loss.
    """
    if recipe.execution.environment is not None:
        raise RecipeError(
            "execution: this engine trains in a Python of its own, and your model and data are objects of this one; "
            "leave execution.kind out"
        )
    engine, part = recipe.engine(), nn.Linear(1, 1)
    model = OwnTraining(part, loss_of_model, OwnBackbone(part, [part]), recipe.objective)
    engine.place(model)
    engine.compile(model)
    if model.backbone.recomputes and look.problem:
        raise RecipeError(
            f"execution: layers are to be computed again in the backward pass, and this model has none for that "
            f"({look.problem}); name its layers with layers=..., or leave recomputation off"
        )


def _failure(model: nn.Module, loss: LossFunction, layers: list[nn.Module], look: Look, plan: LayerPlan) -> str:
    """Return the error of the loss of a first batch under ``plan``; empty where it is computed."""
    backbone = OwnBackbone(model, layers)
    backbone.attach()
    try:
        with quiet(model), torch.random.fork_rng(devices=[]):
            for each in (LayerPlan.full(len(layers)), plan):
                backbone.begin(each)
                loss(model, look.batch.to(next(model.parameters()).device).content)
    # A user's model: whatever it raises is the answer.
    except Exception as error:
        return f"without some of its layers it raises {type(error).__name__}: {' '.join(str(error).split())}"
    finally:
        backbone.detach()
    return ""


def _unscaled(model: nn.Module, loss: LossFunction, layers: list[nn.Module], look: Look) -> str:
    """Return class of a layer whose branches cannot be scaled; empty where all can."""
    backbone = OwnBackbone(model, layers)
    backbone.attach()
    try:
        with quiet(model), torch.random.fork_rng(devices=[]):
            backbone.begin(LayerPlan.full(len(layers)), probing=True)
            loss(model, look.batch.to(next(model.parameters()).device).content)
        return next(
            (type(layer).__name__ for layer, planned in zip(layers, backbone.planned, strict=True)
             if planned.scaling != "branches"), "",
        )  # fmt: skip
    finally:
        backbone.detach()
