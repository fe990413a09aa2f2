"""Next-token prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.objectives.objective import Builder, Labelled, TrainingModel
from workbench.choices.objectives.preview import Shown
from workbench.choices.objectives.sampled_softmax import PredictsWords
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.choices.progress import Progress


class Causal(PredictsWords):
    """Predict the next token from the left (GPT).

    L = mean over positions t of -log p(x_{t+1} | x_1 .. x_t) within one piece of a document: the last token of a
    piece predicts nothing, because what follows it in the packed row is another text.

    Source: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training", equation 1.
    """

    kind: Literal["causal"] = "causal"
    causal: ClassVar[bool] = True
    generates: ClassVar[Literal["next", "unmask"] | None] = "next"

    def build(self, builder: Builder) -> TrainingModel:
        """Return a causal backbone, states (B, T, D), with a head; nothing is drawn, so no seed matters."""
        return CausalModel(self, builder)

    def labelled_fraction(self, progress: Progress) -> float:
        """1: each of a row's T tokens predicts the next (ends of pieces do, with weight 0)."""
        return 1.0

    def preview(self, tokens: Sequence[int], vocabulary: Vocabulary, seed: int = 0) -> list[Shown]:
        """Return the document (T,) as it is: every token but the last is asked for the next."""
        return [Shown(token, "next" if place + 1 < len(tokens) else "read") for place, token in enumerate(tokens)]


def follows(batch: Batch, ahead: int = 1) -> Tensor:
    """Return 1 where the token so many places behind belongs to the same piece, else 0, float32 (B, T)."""
    weight_BT = torch.zeros_like(batch.tokens_BT, dtype=torch.float32)
    # The last columns keep 0: what is behind them stands in another row.
    weight_BT[:, :-ahead] = batch.documents_BT[:, ahead:] == batch.documents_BT[:, :-ahead]
    return weight_BT


class CausalModel(TokenPrediction):
    """A causal backbone that predicts the next token, logits (N, V); arguments as for :class:`TokenPrediction`."""

    choice: Causal

    def counts(self, batch: Batch, progress: Progress) -> dict[str, int]:
        """Return the tokens of rows (B, T) that another one of the same piece follows."""
        documents_BT = batch.documents_BT
        return {"loss": int((documents_BT[:, 1:] == documents_BT[:, :-1]).sum())}

    def labelled(self, batch: Batch, progress: Progress) -> Labelled:
        """Return the batch as it is, tokens (B, T); labels at ends of pieces weigh 0."""
        weight_BT = follows(batch)
        # The first token wraps around to the last column, where the weight is 0; shapes stay (B, T).
        labels_BT = batch.tokens_BT.roll(-1, dims=1)
        return Labelled(batch.tokens_BT, None, labels_BT.flatten(), weight_BT.flatten())
