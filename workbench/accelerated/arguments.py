"""What ``workbench.accelerate`` was called with beside model and loader: read, or refused with the way out."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import nn

from workbench.accelerated.batches import length_of
from workbench.base.errors import RecipeError, check_known
from workbench.choices.choice import Choice, readable, registry, resolve
from workbench.choices.progress import AmountError, parse_budget
from workbench.recipes.recipe import Recipe

CHOICES = ("optimizer", "depth", "execution")
_PLAIN = {"precision": "fp32", "compile": False}
"""Execution where nothing is said of it: what the user's own loop did; everything else is a choice."""
PLAIN_OPTIMIZER = "torch_adamw"
"""Optimizer where none is named."""
_EPOCHS = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*epochs?")
_OWN = {
    "attention": (("auto",), "chooses among the attentions of this package"),
    "head": (("labelled",), "lays out the head of this package's models"),
    "padding": (("removed",), "lays out the rows of this package's data"),
    "compile_scope": (("blocks",), "compiles a model of this package together with its loss"),
    "recompute": (
        ("off", "layers"),
        "goes by the operations and sizes of this package's layers (to fit memory_gib, set micro_batch_size to 'auto')",
    ),
}
"""Knobs of execution that mean something for this package's models only: the values that a user's can have, and why."""


def check_model(model: Any) -> None:
    """Refuse what has no weights to train.

    Raises:
        RecipeError: it is no module, or no sound one, or has no parameters, or only frozen ones.
    """
    if isinstance(model, nn.Module):
        name = type(model).__name__
        # Torch itself stumbles over both, with words that name neither the model nor the way out.
        if "_parameters" not in vars(model):
            raise RecipeError(f"model: this {name} was never set up; its __init__ must begin with super().__init__()")
        if type(model).__hash__ is None:
            raise RecipeError(
                f"model: a {name} cannot be hashed, and torch keeps modules in sets; a dataclass that is a module is "
                "declared with @dataclass(eq=False)"
            )
    if not isinstance(model, nn.Module) or not any(True for _ in model.parameters()):
        raise RecipeError(f"model: a torch.nn.Module with parameters is needed, got {type(model).__name__}")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise RecipeError(
            f"model: every parameter of this {type(model).__name__} is frozen, so nothing would train; switch some on "
            "with model.requires_grad_(True), or of a part of it"
        )


def check_loss(loss: Any) -> None:
    """Refuse a loss of predictions and targets, or none at all, where one of model and batch is needed.

    Raises:
        RecipeError: it is not callable, or one of torch's.
    """
    if callable(loss) and not str(getattr(loss, "__module__", "")).startswith("torch.nn."):
        return
    got, name = f"{loss!r:.80}", "torch.nn.functional.cross_entropy"
    if isinstance(loss, nn.Module):
        name = f"torch.nn.{got}"
    elif callable(loss):
        name = f"torch.nn.functional.{getattr(loss, '__name__', 'cross_entropy')}"
    raise RecipeError(
        f"loss: {got} is no function of model and batch; write "
        f"loss=lambda model, batch: {name}(model(batch[0]), batch[1]), for batches of inputs and targets"
    )


def check_choices(choices: Mapping[str, Any], others: Iterable[str] = ()) -> None:
    """Refuse what is no choice.

    Args:
        others: arguments that stand beside choices, and may have been meant.

    Raises:
        RecipeError: an unknown name, one that has no place here, or an object that names no kind.
    """
    for given, value in choices.items():
        if given in ("objective", "architecture", "data"):
            raise RecipeError(
                f"{given}: model, data and loss are yours here, so a recipe's {given} has no place; say the loss with "
                "loss=..., or launch a recipe (workbench.launch), with architecture 'transformers' for models by name"
            )
        if given in ("epochs", "steps", "tokens", "seconds", "minutes", "hours"):
            raise RecipeError(f"{given}: how long a run trains is its budget; write budget='{value} {given}'")
        if whole := _as_knob(given, value, choices):
            raise RecipeError(f"{given}: a knob of {whole.partition('=')[0]}; write {whole}")
        if isinstance(value, torch.optim.Optimizer):
            raise RecipeError(f"{given}: {_instead_of(value)}")
        check_known("accelerate", given, (*CHOICES, *others), RecipeError)
        if not isinstance(value, str | Mapping | Choice):
            legal = list(registry(given))
            example = "{'kind': 'adamw', 'lr': 1e-3}" if given == "optimizer" else f"{{'kind': '{legal[0]}'}}"
            raise RecipeError(
                f"{given}: a {type(value).__name__} is not read; name a kind, with its knobs if need be, as in "
                f"{given}={example}; legal: {', '.join(legal)}"
            )


def _as_knob(name: str, value: Any, choices: Mapping[str, Any]) -> str:
    """The argument that a knob belongs into; empty where the name is none, or one beside the choices."""
    default = Recipe().execution
    for axis in CHOICES:
        chosen = choices.get(axis)
        named = chosen.get("kind") if isinstance(chosen, Mapping) else chosen
        plain = {"optimizer": PLAIN_OPTIMIZER, "execution": default.kind}.get(axis)
        kinds = [named] if isinstance(named, str) else [plain, *registry(axis)]
        for kind in kinds:
            known = readable(axis).get(str(kind))
            if known is not None and name in known.model_fields and name != "kind":
                return f"{axis}={({} if kind == plain else {'kind': kind}) | {name: value}!r}"
    return ""


def _instead_of(optimizer: torch.optim.Optimizer) -> str:
    """Why a torch optimizer is not taken, and what to write where a kind of this package computes the same."""
    group, name = optimizer.param_groups[0], type(optimizer).__name__
    same = type(optimizer) is torch.optim.AdamW and len(optimizer.param_groups) == 1 and not group["amsgrad"]
    if not same:
        return (
            f"a {name} is not read, since a run makes its own; name a kind, with its knobs if need be, as in "
            f"optimizer={{'kind': 'lion', 'lr': 1e-4}}; legal: {', '.join(registry('optimizer'))}"
        )
    knobs = {
        "lr": group["lr"], "beta1": group["betas"][0], "beta2": group["betas"][1], "eps": group["eps"],
        "weight_decay": group["weight_decay"],
    }  # fmt: skip
    fields = readable("optimizer")[PLAIN_OPTIMIZER].model_fields
    told = {knob: float(given) for knob, given in knobs.items() if float(given) != fields[knob].default}
    return f"an {name} is not read, since a run makes its own; " + (
        f"the same one is optimizer={told!r}" if told else "the same one is used where optimizer is left out"
    )


def optimizer_of(value: Any) -> Any:
    """The optimizer that was named; without a kind torch's AdamW, which the user's own loop most likely had."""
    return {"kind": PLAIN_OPTIMIZER, **value} if isinstance(value, Mapping) else value


def depth_of(value: Any) -> Any:
    """The depth method that was named.

    Raises:
        RecipeError: there is none such.
    """
    return _resolved("depth", value)


def execution_of(value: Any) -> Any:
    """The execution that was named, float32 and not compiled where nothing is said of that.

    Raises:
        RecipeError: there is none such, or a knob is set that means nothing for a user's model.
    """
    plain = Recipe().execution
    if isinstance(value, Mapping) and value.get("kind", plain.kind) == plain.kind:
        value = {"kind": plain.kind, **_PLAIN, **value}
    execution = _resolved("execution", value)
    for name, (legal, why) in _OWN.items():
        field = type(execution).model_fields.get(name)
        # What is another engine's default nobody has said.
        if field and (got := getattr(execution, name)) not in (*legal, field.default):
            raise RecipeError(
                f"execution.{name}: '{got}' {why}, and this model is your own; use {' or '.join(map(repr, legal))}"
            )
    return execution


def _resolved(axis: str, value: Any) -> Any:
    try:
        return resolve(axis, value)
    except ValueError:
        # The recipe's own check says it with path and legal values.
        Recipe(**{axis: value})
        raise


def budget_of(budget: str | Mapping[str, Any], loader: Iterable[Any]) -> str | Mapping[str, Any]:
    """The budget in units of recipes: epochs become steps.

    Raises:
        RecipeError: it is no positive number and a unit, or counts epochs of a loader without a length.
    """
    if not isinstance(budget, str):
        return budget
    epochs = _EPOCHS.fullmatch(budget.strip().lower())
    try:
        if float(epochs[1] if epochs else parse_budget(budget)["amount"]) <= 0:
            raise ValueError
    except AmountError as error:
        raise RecipeError(f"budget: {error}") from None
    except ValueError:
        raise RecipeError(
            f"budget: '{budget}' is not a positive number and a unit; write '3 epochs', '500 steps', '1.5M tokens', "
            "'90 s' or '2 hours'"
        ) from None
    if epochs is None:
        return budget
    if (batches := length_of(loader)) is None:
        raise RecipeError(f"budget: '{budget}' of a loader that does not say its length; count in steps: '500 steps'")
    return f"{max(1, math.ceil(float(epochs[1]) * batches))} steps"
