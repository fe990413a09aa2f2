"""Next-token prediction."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch

from workbench.choices.architectures.architecture import Architecture, Backbone
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.objectives.objective import Objective, TrainingModel
from workbench.choices.objectives.token_prediction import Labelled, TokenPrediction
from workbench.choices.progress import Progress


class Causal(Objective):
    """Predict the next token from the left (GPT).

    L = mean over positions t of -log p(x_{t+1} | x_1 .. x_t) within one piece of a document: the last token of a
    piece predicts nothing, because what follows it in the packed row is another text.

    Source: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training", equation 1.
    """

    kind: Literal["causal"] = "causal"
    causal: ClassVar[bool] = True

    def build(self, backbone: Backbone, architecture: Architecture, vocabulary: Vocabulary, seed: int) -> TrainingModel:
        return CausalModel(self, backbone, architecture, vocabulary, seed)

    def labelled_fraction(self, progress: Progress) -> float:
        return 1.0


class CausalModel(TokenPrediction):
    """A causal backbone that predicts the next token; arguments as for :class:`TokenPrediction`."""

    choice: Causal

    def labelled(self, batch: Batch, progress: Progress) -> tuple[Labelled, int]:
        """The batch as it is; at most B * (T - 1) labels, those at ends of pieces weigh 0."""
        rows, length = batch.tokens_BT.shape
        return self.labelled_heldout(batch), rows * (length - 1)

    def labelled_heldout(self, batch: Batch) -> Labelled:
        """The same labels as in training: nothing is drawn."""
        weight_BT = torch.zeros_like(batch.tokens_BT, dtype=torch.float32)
        weight_BT[:, :-1] = batch.documents_BT[:, 1:] == batch.documents_BT[:, :-1]
        labels_BT = batch.tokens_BT.roll(-1, dims=1)
        return Labelled(batch.tokens_BT, None, labels_BT.flatten(), weight_BT.flatten())
