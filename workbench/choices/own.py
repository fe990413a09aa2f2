"""Placeholders in a recipe for a model, a loss and data that are the user's objects (``workbench.accelerate``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from workbench.base.errors import RecipeError
from workbench.choices.architectures.architecture import Architecture, Backbone
from workbench.choices.choice import Problem, knob, one_of
from workbench.choices.data.batch_rules.as_scheduled import AsScheduled
from workbench.choices.data.data import Data
from workbench.choices.data.orders.shuffled import Shuffled
from workbench.choices.data.steps.step import Step
from workbench.choices.data.tokenizers.trained import TrainedTokenizer
from workbench.choices.data.tokens import Vocabulary
from workbench.choices.objectives.objective import Builder, Objective, TrainingModel
from workbench.choices.progress import Progress


def _gone(what: str) -> RecipeError:
    return RecipeError(f"{what} of this run was an object of a Python program, which no recipe holds")


class OwnModel(Architecture):
    """A torch model of the user's: which class it is, and where its layers are."""

    placeholder: ClassVar[str] = "a model"
    kind: Literal["own_model"] = "own_model"
    model: str = knob("", "class of the model")
    parameters: int = knob(0, "numbers in its parameters, frozen ones included", ge=0)
    frozen: int = knob(0, "of these, numbers in parameters that were frozen before the run", ge=0)
    layers: int = knob(1, "layers of its stack; 1 where it has none: the model as a whole", ge=1)
    stack: str = knob("", "name of the module that holds its layers; empty where it has no stack")
    # Of those that all architectures have, only the model knows these: no recipe says them.
    width: int = knob(8, "not known", ge=8, exclude=True)
    heads: int = knob(1, "not known", ge=1, exclude=True)
    ffn_width: int | None = knob(None, "not known", ge=8, exclude=True)
    head: Literal["own"] = knob("own", "the model's own", exclude=True)  # type: ignore[assignment]
    tied: bool = knob(False, "not known", exclude=True)

    def build(self, vocabulary: Vocabulary, sequence_length: int, *, causal: bool, attention: str) -> Backbone:
        """Impossible: the model, whatever its shapes (B, T, D), was an object.

        Raises:
            RecipeError: always; the message says what to do instead.
        """
        raise _gone(f"the model, a {self.model},")

    def least_parameters(self, tokens: int) -> int:
        """Return all that the model has."""
        return self.parameters

    @property
    def frozen_parameters(self) -> int:
        """Those that were frozen before the run; what a depth method freezes trains at other times."""
        return self.frozen

    def block_parameters(self) -> int:
        """Not known by matrix, (D, D) and the like: FLOPs of such a model are counted on a pass through it."""
        raise _gone(f"the model, a {self.model},")


class OwnLoss(Objective):
    """A loss of the user's: the model's own, or a function of model and batch."""

    placeholder: ClassVar[str] = "a loss"
    kind: Literal["own_loss"] = "own_loss"
    loss: str = knob("", "name of the function, or `model(**batch).loss`")

    def build(self, builder: Builder) -> TrainingModel:
        """Impossible, whatever the states (B, T, D): the loss was an object.

        Raises:
            RecipeError: always; the message says what to do instead.
        """
        raise _gone(f"the loss, {self.loss},")

    def labelled_fraction(self, progress: Progress) -> float:
        """1: every row, or token of it, counts."""
        return 1.0


class OwnLoader(Data):
    """Batches of the user's, as a loader gives them."""

    placeholder: ClassVar[str] = "a loader"
    kind: Literal["own_loader"] = "own_loader"
    loader: str = knob("", "class of the loader")
    dataset: str = knob("", "class of what it reads; empty where it does not say")
    batches: int | None = knob(None, "batches of an epoch; empty where the loader does not say", ge=1)
    batch_size: int = knob(1, "rows of its first batch", unit="rows", ge=1)  # type: ignore[assignment]
    counted: Literal["tokens", "rows"] = knob(
        "rows", "what is counted as tokens: those of `input_ids` that are no padding, or rows where there are none"
    )
    # Of those that all data have, these mean nothing here.
    tokenizer: TrainedTokenizer = knob(help="none", default_factory=TrainedTokenizer, exclude=True)
    sequence_length: int = knob(1, "as the loader gives them", unit="tokens", ge=1, exclude=True)  # type: ignore[assignment]
    length_step: int = knob(8, "none", ge=8, exclude=True)
    batch_rule: AsScheduled = knob(help="none", default_factory=AsScheduled, exclude=True)
    heldout_fraction: float = knob(0.05, "none", gt=0, lt=1, exclude=True)
    steps: tuple[one_of(Step), ...] = knob((), "none", exclude=True)  # type: ignore[valid-type]
    tokens_limit: int = knob(0, "none", ge=0, exclude=True)
    order: Shuffled = knob(help="none", default_factory=Shuffled, exclude=True)

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Yield an optimizer of several workers; about all else the loader decides."""
        if recipe.optimizer.combine.count > 1:
            yield Problem("optimizer.combine.kind", "workers share the rows of a text, not a loader's; use 'mean'")
