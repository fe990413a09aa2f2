"""What a depth method needs of a user's model, looked for before anything starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from workbench.accelerated.model import Look, LossFunction, OwnTraining, loss_of_model, quiet
from workbench.accelerated.stack import OwnBackbone, stack_named, stacks
from workbench.base.errors import RecipeError
from workbench.choices.architectures.architecture import copies, uncopied
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.own import OwnModel
from workbench.choices.progress import LOOK_AHEAD, Budget, progress_at
from workbench.recipes.recipe import Recipe

_SEVERAL = 0.5
"""Two lists of layers, of which the smaller has this share of the other's weights, are equally well meant."""
_UNSCALED = {"rescale": "false", "scaling": "'none'"}
"""Knobs of depth methods that switch scaling off, and their values for that."""


def plans_of(depth: Any, layers: int, budget: Budget) -> Iterator[LayerPlan]:
    """What a method does with so many layers, at points spread over the budget."""
    for point in range(LOOK_AHEAD):
        yield depth.plan(layers, progress_at(budget, point / LOOK_AHEAD), 0)


def needs_stack(depth: Any) -> bool:
    """Whether a method ever does anything else than run and train all layers."""
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
    found, kind = stacks(model), type(model).__name__
    if not found:
        if needs_stack(depth):
            sequences = [name for name, module in model.named_modules() if isinstance(module, nn.Sequential) and name]
            hint = f"layers='{sequences[0]}' names a torch.nn.Sequential of it" if sequences else "give it one"
            raise RecipeError(
                f"depth: '{depth.kind}' decides layer by layer, and {kind} has no torch.nn.ModuleList of layers of one "
                f"class; {hint}, or use depth 'full'"
            )
        return "", [model]
    names = list(found)
    sizes = [sum(p.numel() for p in found[name].parameters()) for name in names]
    if needs_stack(depth) and len(names) > 1 and sizes[1] >= _SEVERAL * sizes[0]:
        rivals = [name for name, size in zip(names, sizes, strict=True) if size >= _SEVERAL * sizes[0]]
        raise RecipeError(
            f"layers: {kind} has several stacks, {', '.join(map(repr, rivals))}; say which one depth '{depth.kind}' is "
            f"meant for, for example layers='{names[0]}'"
        )
    return names[0], list(found[names[0]].children())


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
    kind, where, out = type(model).__name__, f"the layers '{path}'", "or use depth 'full'"
    if look.problem:
        raise RecipeError(
            f"depth: '{depth.kind}' cannot be carried out on {where} of {kind}: {look.problem}; name another list of "
            f"layers with layers=..., {out}"
        )
    for source, layer in copies(depth, len(layers)):
        if missing := uncopied(layers[source], layers[layer]):
            raise RecipeError(
                f"depth: layer {layer + 1} of '{path}' cannot start as a copy of layer {source + 1}, which has no "
                f"{missing[0]} of its shape; {out.removeprefix('or ')}"
            )
    plans = list(plans_of(depth, len(layers), Budget()))
    if look.change and any(plan.layers < plan.total or min(plan.keep) < 1 or not all(plan.runs) for plan in plans):
        raise RecipeError(
            f"depth: '{depth.kind}' leaves layers out, and {where} of {kind} are not residual by themselves: "
            f"{look.change}; move all of it into the layer's own forward, {out}"
        )
    leanest = min(plans, key=lambda plan: sum(plan.runs))
    if sum(leanest.runs) < len(layers) and (failed := _failure(model, loss, layers, look, leanest)):
        raise RecipeError(
            f"depth: '{depth.kind}' leaves layers out, and {kind} cannot be computed then: {failed}; a layer that is "
            f"left out gives its input and, where {where} return tuples, None for all else; {out.removeprefix('or ')}"
        )
    if any(scale != 1 for plan in plans for scale in plan.scale) and (unscaled := _unscaled(model, loss, layers, look)):
        knobs = [f"depth.{name} to {off}" for name, off in _UNSCALED.items() if name in type(depth).model_fields]
        ways = [f"set {knobs[0]}"] if knobs else []
        raise RecipeError(
            f"depth: '{depth.kind}' scales what a layer adds to its input, and a {unscaled} in '{path}' neither "
            f"adds to its input nor ends in a norm; {' '.join([*ways, 'or use']) if ways else 'use'} depth 'full'"
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
    """What the loss of a first batch raises under ``plan``, in words; empty where it is computed."""
    backbone = OwnBackbone(model, layers)
    backbone.attach()
    try:
        with quiet(model), torch.random.fork_rng(devices=[]):
            for each in (LayerPlan.full(len(layers)), plan):
                backbone.begin(each)
                loss(model, look.batch.to(next(model.parameters()).device).content)
    # A user's model: whatever it raises is the answer.
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    finally:
        backbone.detach()
    return ""


def _unscaled(model: nn.Module, loss: LossFunction, layers: list[nn.Module], look: Look) -> str:
    """Class of a layer whose branches cannot be scaled; empty where all can."""
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
