"""The weights of a run of ``workbench.accelerate``, put back into a model of the user's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from workbench.base.errors import RunError
from workbench.recipes.recipe import Recipe
from workbench.store.folder import RunFolder
from workbench.training.restored import saved_checkpoint

PREFIX = "model."
"""Before the user's own names in a checkpoint: the model stands there beside its loss."""
_NAMED = 3
"""Weights that a refusal names; of more it tells the number."""


def load_into(folder: RunFolder, model: nn.Module, step: int | None = None) -> nn.Module:
    """Load a checkpoint of a run into a model of the class that it trained; returns the model.

    Args:
        step: of the checkpoint; None for the newest that is whole.

    Raises:
        RunError: no such checkpoint, a run that has its model from a recipe, or other names or shapes of weights.
        CheckpointError: the checkpoint is damaged.
    """
    if not isinstance(model, nn.Module):
        raise RunError(f"load_into takes a model, a torch.nn.Module, got {type(model).__name__}")
    if not (recipe := Recipe.load(folder.recipe)).architecture.placeholder:
        raise RunError(
            f"run '{folder.id}' has its model from a recipe, and load_into is for models of your own; write it with "
            f"`workbench export {folder.id} FOLDER`, and load that as its README says"
        )
    saved = saved_checkpoint(folder, step)
    tensors = saved.tensors["model"]
    tensors = {**tensors, **{alias: tensors[name] for alias, name in saved.meta["tied"].items()}}
    weights = {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items()}
    if different := _differences(weights, model.state_dict()):
        raise RunError(
            f"run '{folder.id}' trained a {recipe.architecture.model}, and its weights do not fit this "
            f"{type(model).__name__}: {'; '.join(different)}; build the model as it was built for the run"
        )
    model.load_state_dict(weights)
    return model


def _differences(saved: Mapping[str, Any], present: Mapping[str, Any]) -> list[str]:
    """List the differences between weights of a checkpoint and of a model in names and shapes; empty where they fit."""
    lacking = [name for name in saved if name not in present]
    further = [name for name in present if name not in saved]
    shapes = [
        f"{name} is {tuple(tensor.shape)}, was {tuple(saved[name].shape)}"
        for name, tensor in present.items()
        if name in saved and isinstance(tensor, torch.Tensor) and tensor.shape != saved[name].shape
    ]
    found = (("the model has no ", lacking), ("the checkpoint has no ", further), ("", shapes))
    return [f"{what}{_listed(names)}" for what, names in found if names]


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
