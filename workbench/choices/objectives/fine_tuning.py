"""Base of the objectives of fine-tuning: a new head on an encoder, and one target for every packed example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from workbench.choices.choice import knob
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.objective import Builder, Loss, Objective, TrainingModel
from workbench.choices.progress import Progress
from workbench.choices.tasks.encoding import Encoded
from workbench.choices.tasks.files import Example
from workbench.choices.tasks.rows import ExampleBatch
from workbench.ops.dropout import dropped

# Shape legend: B rows, T positions of a row, D width, E examples of a batch, W windows of a split, C outputs.


class FineTuning(Objective):
    """Base of the objectives of fine-tuning; subclasses say what the C outputs of an example (E, C) mean."""

    listed: ClassVar[bool] = False
    one_network: ClassVar[bool] = False
    provides: ClassVar[tuple[str, ...]] = ("nats", "scores", "baseline")
    whole: ClassVar[bool] = False
    """True where outputs are of every token (E, T, C), not of the example."""
    encoder: str = knob("", "what the encoder begins with, in words; empty: fresh weights")
    reads: Literal["both", "left"] = knob("both", "what a token of the encoder sees: both sides, or those before it")
    pooling: Literal["first", "mean"] = knob(
        "first", "state that stands for an example: its first token's (of an encoder that reads left, the last's), or "
        "the mean of all"
    )  # fmt: skip
    dropout: float = knob(0.1, "dropout before the new head", ge=0, lt=1)

    @property
    def causal(self) -> bool:  # type: ignore[override]
        """True where a token sees only those before it, (T, T): a property of the encoder here."""
        return self.reads == "left"

    @property
    def outputs(self) -> int:
        """Number C of outputs, (E, C)."""
        return 1

    def build(self, builder: Builder) -> TrainingModel:
        """Return the encoder, states (B, T, D), with a fresh head, (D, C)."""
        return ExampleModel(self, builder)

    def labelled_fraction(self, progress: Progress) -> float:
        """0: no token is predicted, whatever the rows (B, T)."""
        return 0.0

    def nats(self, outputs: Tensor, batch: ExampleBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss summed over the examples, 0-d, and sums worth plotting, 0-d.

        Args:
            outputs: float32, (E, C), or (E, T, C) where :attr:`whole`.
        """
        raise NotImplementedError

    def scores(self, outputs: Sequence[np.ndarray], encoded: Encoded) -> dict[str, float]:
        """Return the scores of a split by name, from the outputs of each window, (C,) or (T, C)."""
        raise NotImplementedError

    def baseline(self, train: Sequence[Example], examples: Sequence[Example]) -> dict[str, float]:
        """Return the scores by name of an answer that reads nothing: the majority's (C,), the mean, an overlap."""
        raise NotImplementedError


class ExampleModel(TrainingModel):
    """An encoder with a linear head: packed examples (B, T) -> outputs (E, C), or (E, T, C)."""

    choice: FineTuning

    def __init__(self, choice: FineTuning, builder: Builder) -> None:
        super().__init__()
        self.choice = choice
        self.backbone = builder.backbone()
        self.head = nn.Linear(builder.architecture.width, choice.outputs)
        # As transformers begins a classifier.
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def counts(self, batch: Batch, progress: Progress) -> dict[str, int]:
        """Return the examples of packed rows (B, T)."""
        return {"loss": len(batch.begins_E)}  # type: ignore[attr-defined]

    def forward(self, batch: Batch, plan: LayerPlan, progress: Progress) -> Loss:
        """Return the loss of packed rows (B, T), summed over their examples."""
        examples: Any = batch
        nats, metrics = self.choice.nats(self.outputs(examples, plan), examples)
        return Loss({"loss": nats}, {name: value.detach() for name, value in metrics.items()})

    def outputs(self, batch: ExampleBatch, plan: LayerPlan) -> Tensor:
        """Return the head's outputs, float32: (E, C), or (E, T, C) with T of the longest example."""
        x_ED = self._pooled(batch, plan)
        if self.training and self.choice.dropout:
            x_ED = dropped(x_ED, self.choice.dropout)
        return self.head(x_ED).float()  # type: ignore[no-any-return]

    def _pooled(self, batch: ExampleBatch, plan: LayerPlan) -> Tensor:
        begins_E, lengths_E = batch.begins_E, batch.lengths_E
        if not self.choice.whole and self.choice.pooling == "first":
            index_E = begins_E + (lengths_E - 1) * self.choice.causal
            # Rising, as the backbone wants them; back in the order of the examples after it.
            order_E = index_E.argsort()
            return self.backbone(batch.tokens_BT, batch.rows, plan, index_E[order_E])[order_E.argsort()]  # type: ignore[no-any-return]
        x_ND = self.backbone(batch.tokens_BT, batch.rows, plan).flatten(0, 1)
        place_ET = begins_E[:, None] + torch.arange(batch.tokens_BT.shape[1], device=begins_E.device)
        x_ETD = x_ND[place_ET.clamp(max=len(x_ND) - 1)]
        if self.choice.whole:
            return x_ETD
        inside_ET1 = within(lengths_E, x_ETD.shape[1])[..., None]
        return (x_ETD * inside_ET1).sum(1) / lengths_E[:, None]

    def compile(self, **options: object) -> None:
        """Compile the blocks, (B, T, D) -> (B, T, D)."""
        self.backbone.compile_blocks(**options)


def within(lengths_E: Tensor, longest: int) -> Tensor:
    """Return which of T places lie in an example, bool (E, T)."""
    return torch.arange(longest, device=lengths_E.device) < lengths_E[:, None]
