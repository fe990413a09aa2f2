"""Define the contract of notes: what a model keeps of the text beside its weights, and reads again in training."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from workbench.choices.choice import Choice
from workbench.choices.data.tokens import Batch, TokenStore, Vocabulary

# Shape legend: B rows, T positions, D width.


class Notebook(nn.Module):
    """Notes of one model: read into its input, written from its output, in training steps alone.

    Notes are buffers, so that checkpoints hold them. Scores and exported models do not read them.
    """

    def study(self, text: TokenStore) -> None:
        """Decide from the training text (N,) what is noted."""
        raise NotImplementedError

    def read(self, x_BTD: Tensor, shown_BT: Tensor, batch: Batch) -> Tensor:
        """Return the input (B, T, D) with what was noted; nothing may be told of a token that is hidden.

        Args:
            shown_BT: ids as the model sees them. batch: has the true ones.
        """
        raise NotImplementedError

    def write(self, x_BTD: Tensor, batch: Batch) -> None:
        """Note the output (B, T, D) of a training step, without gradient."""
        raise NotImplementedError


class Notes(Choice):
    """Base of the ways to keep notes."""

    axis: ClassVar[str] = "notes"
    provides: ClassVar[tuple[str, ...]] = ("build",)

    def build(self, vocabulary: Vocabulary, length: int, width: int) -> Notebook | None:
        """Return an empty notebook for rows of at most ``length`` tokens and states (B, T, width); None for none."""
        raise NotImplementedError
