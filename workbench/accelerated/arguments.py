"""Read the arguments of ``workbench.accelerate``, or refuse them with the way out."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from workbench.accelerated.batches import length_of
from workbench.base.errors import RecipeError, check_known
from workbench.choices.choice import Choice, registry, resolve
from workbench.choices.progress import AmountError, parse_budget
from workbench.recipes.recipe import Recipe

CHOICES = ("optimizer", "depth", "execution")
_PLAIN = {"precision": "fp32", "compile": False}
"""Execution where nothing is said of it: what the user's own loop did; everything else is a choice."""
PLAIN_OPTIMIZER = "torch_adamw"
"""Optimizer where none is named."""
_EPOCHS = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*epochs?")
_OWN = {
    "attention": ("auto",), "head": ("labelled",), "padding": ("removed",), "compile_scope": ("blocks",),
    "recompute": ("off", "layers"),
}  # fmt: skip
"""Knobs of execution that go by the parts of this package's models: the values that a user's model can have."""


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
    raise RecipeError(
        f"loss: {loss!r:.80} is no function of model and batch; write loss=lambda model, batch: "
        "torch.nn.functional.cross_entropy(model(batch[0]), batch[1]), for batches of inputs and targets"
    )


def check_choices(choices: Mapping[str, Any], others: Iterable[str] = ()) -> None:
    """Refuse what is no choice.

    Args:
        choices: what was given beside model and loader, by name.
        others: arguments that stand beside choices, and may have been meant.

    Raises:
        RecipeError: an unknown name, one that has no place here, or an object that names no kind.
    """
    for given, value in choices.items():
        try:
            check_known("accelerate", given, (*CHOICES, *others), RecipeError)
        except RecipeError as error:
            raise RecipeError(
                f"{error}; a knob belongs into its choice (optimizer={{'lr': 1e-3}}), a duration into the budget "
                "(budget='3 epochs'), and model, data and loss are your own"
            ) from None
        if not isinstance(value, str | Mapping | Choice):
            raise RecipeError(
                f"{given}: a {type(value).__name__} is not read, since a run makes its own; name a kind, with its "
                f"knobs if need be, as in {given}={{'kind': '{next(iter(registry(given)))}'}}; "
                f"legal: {', '.join(registry(given))}"
            )


def optimizer_of(value: Any) -> Any:
    """Return the optimizer that was named; without a kind torch's AdamW, which the user's own loop most likely had."""
    return {"kind": PLAIN_OPTIMIZER, **value} if isinstance(value, Mapping) else value


def depth_of(value: Any) -> Any:
    """The depth method that was named.

    Raises:
        RecipeError: there is none such.
    """
    return _resolved("depth", value)


def execution_of(value: Any) -> Any:
    """Return the execution that was named, float32 and not compiled where nothing is said of that.

    Raises:
        RecipeError: there is none such, or a knob is set that means nothing for a user's model.
    """
    plain = Recipe().execution
    if isinstance(value, Mapping) and value.get("kind", plain.kind) == plain.kind:
        value = {"kind": plain.kind, **_PLAIN, **value}
    execution = _resolved("execution", value)
    for name, legal in _OWN.items():
        field = type(execution).model_fields.get(name)
        # What is another engine's default nobody has said.
        if field and (got := getattr(execution, name)) not in (*legal, field.default):
            raise RecipeError(
                f"execution.{name}: '{got}' goes by the parts of this package's models, and this one is your own; use "
                f"{' or '.join(map(repr, legal))}"
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
    """Return the budget in units of recipes: epochs become steps.

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
