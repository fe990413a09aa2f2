"""A user's model with its loss, as the loop trains it, and what a first look at it tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from workbench.accelerated.batches import OwnBatch, described, first_of, many_rows
from workbench.accelerated.stack import OwnBackbone, Watched
from workbench.base.errors import RecipeError, typed_line
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.objective import Loss, Objective, TrainingModel
from workbench.choices.progress import Progress

LossFunction = Callable[[nn.Module, Any], Tensor]
OWN_LOSS = "model(**batch).loss"
_LOSS = (
    "put 'labels' into batches that are mappings for `model(**batch).loss`, or say how the loss is computed: "
    "loss=lambda model, batch: torch.nn.functional.cross_entropy(model(batch[0]), batch[1])"
)


def loss_of_model(model: nn.Module, batch: Any) -> Tensor:
    """Return the loss that a model of transformers returns beside its logits, 0-d.

    Raises:
        RecipeError: batches have no names, or the model returns no loss.
    """
    loss = getattr(model(**batch), "loss", None) if isinstance(batch, Mapping) else None
    if loss is None:
        raise RecipeError(f"loss: {type(model).__name__} returns none for {described(batch)}; {_LOSS}")
    found: Tensor = loss
    return found


class OwnTraining(TrainingModel):
    """A user's model and loss.

    Args:
        model: whose weights train. loss: of model and batch, 0-d.
        backbone: its layers.
        choice: what stands for the loss in the recipe.
    """

    backbone: OwnBackbone

    def __init__(self, model: nn.Module, loss: LossFunction, backbone: OwnBackbone, choice: Objective) -> None:
        super().__init__()
        self.model, self.choice, self.loss = model, choice, loss
        # Past nn.Module's registration: a weight has one name, that of the user's model.
        self.__dict__["backbone"] = backbone

    def forward(self, batch: OwnBatch, plan: LayerPlan, progress: Progress) -> Loss:  # type: ignore[override]
        """Return the mean loss of a micro-batch times its count, 0-d, its layers under ``plan``."""
        return Loss({"loss": self.mean_loss(batch, plan) * batch.count})

    def counts(self, batch: OwnBatch, progress: Progress) -> dict[str, int]:  # type: ignore[override]
        """Return what the mean loss of a batch (rows, ...) is a mean over."""
        return {"loss": batch.count}

    def mean_loss(self, batch: OwnBatch, plan: LayerPlan) -> Tensor:
        """Return the mean loss of a batch on the model's device, 0-d, its layers under ``plan``."""
        self.backbone.begin(plan)
        return self.loss(self.model, batch.content)

    def freeze_outside(self, plan: LayerPlan) -> None:
        """See :meth:`OwnBackbone.freeze_outside`; shapes do not matter."""
        self.backbone.freeze_outside(plan)

    def compile(self, **options: object) -> None:
        """Layer by layer; without a stack as a whole."""
        self.backbone.compile_blocks(**options)


@dataclass(frozen=True)
class Look:
    """Findings of one pass over one batch, before a run.

    Attributes:
        batch: the first one, on the CPU.
        problem: why no plan can be carried out on the layers; empty when it can.
        change: why no layer can be left out; empty when each can.
        layer_flops: forward, per token, by layer. rest_flops: of all else.
    """

    batch: OwnBatch
    problem: str
    change: str
    layer_flops: tuple[float, ...]
    rest_flops: float


def look_at(
    model: nn.Module, loss: LossFunction, layers: Iterable[nn.Module], loader: Iterable[Any],
    heldout: Iterable[Any] | None = None,
) -> Look:  # fmt: skip
    """Take a first batch and run the model on it, without a trace: of the graph for gradients nothing is kept.

    Args:
        heldout: of which a first batch must have a loss as well.

    Raises:
        DataError: a loader gives no batch.
        RecipeError: the loss of a first batch is none, cannot be computed, or has no gradients.
    """
    watched = Watched(list(layers))
    with torch.random.fork_rng(devices=[]):
        batch = _first_loss(model, loss, loader, "loader", watched)
        if heldout is not None:
            _first_loss(model, loss, heldout, "heldout")
    per_token = tuple(flops / batch.tokens for flops in watched.flops)
    return Look(batch, watched.problem(), watched.change(), per_token, watched.total / batch.tokens - sum(per_token))


def _first_loss(
    model: nn.Module, loss: LossFunction, loader: Iterable[Any], what: str, watched: Watched | None = None
) -> OwnBatch:
    """Return the first batch of a loader, once its loss was computed and is one that trains.

    Args:
        what: the argument that the loader was, for messages.
        watched: looks at the layers meanwhile.
    """
    batch = OwnBatch.of(first_of(loader, what))
    # With gradients, to see whether the loss has any; what a backward pass would need is let go of at once.
    forget = torch.autograd.graph.saved_tensors_hooks(lambda tensor: None, lambda kept: kept)
    try:
        with quiet(model), torch.enable_grad(), forget, watched or nullcontext():
            value = loss(model, batch.to(next(model.parameters()).device).content)
        _check_value(value)
    except RecipeError as error:
        raise RecipeError(f"{what}: {error}" if what == "heldout" else str(error)) from error
    # A user's model, loss and data: whatever they raise is the answer.
    except Exception as error:
        ways = [] if many_rows(batch.content) else [f"give batches: torch.utils.data.DataLoader({what}, batch_size=32)"]
        if loss is loss_of_model:
            ways.append(_LOSS)
        raise RecipeError(
            f"{what}: the loss of its first batch, {described(batch.content)}, cannot be computed: "
            f"{'; '.join([' '.join(typed_line(error).split()), *ways])}"
        ) from error
    return batch


def _check_value(value: Any) -> None:
    if not isinstance(value, Tensor) or value.numel() != 1:
        got = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
        raise RecipeError(f"loss: must be one number, the mean over the batch, got {got}; return loss.mean()")
    if not value.requires_grad:
        raise RecipeError(
            "loss: it does not depend on any parameter that trains, so there are no gradients; return it as it was "
            "computed, without .detach(), .item(), torch.tensor(...) or torch.no_grad()"
        )


@contextmanager
def quiet(model: nn.Module) -> Iterator[None]:
    """Let the model evaluate without gradients while entered; each module is in its own mode afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        with torch.no_grad():
            model.eval()
            yield
    finally:
        for module, training in modes:
            module.training = training
