"""Masked language modelling that learns from chosen tokens."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from workbench.choices.choice import knob
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.objectives.corruption import CPU, Corrupting, Corruption, labelled_places, labels_per_row
from workbench.choices.objectives.objective import Builder, Labelled, TrainingModel
from workbench.choices.objectives.preview import Shown, shown
from workbench.choices.objectives.selective import ChoosesTokens, ChoosingModel
from workbench.choices.progress import Progress
from workbench.choices.schedules.schedule import at

# Shape legend: B rows, T positions, D width, K labelled slots of a row, N = B * K.


class SelectiveMasked(ChoosesTokens):
    """Predict masked tokens, and learn from those that cost most beyond a reference model (Rho-1).

    L = mean over chosen t of -log p(x_t | corrupted row),  e_t = -log p(x_t | ..) + log p_ref(x_t | ..)

    Of the n masked tokens of a row the ceil(keep * n) with the highest excess e_t are chosen. Both models read the same
    corrupted row. The reference is a frozen checkpoint of another run with the same tokenizer; without one p_ref = 1.

    Source: Lin et al. 2024, Rho-1 (arXiv 2404.07965), equations 2 to 5, which are about next tokens; masked tokens and
    the choice within a row are ours.
    """

    kind: Literal["selective_masked"] = "selective_masked"
    # No schedule: FLOPs of head and reference follow from the shape of a batch alone.
    mask_rate: float = knob(0.3, "share of positions that are masked, of which `keep` count", gt=0, lt=1)
    corruption: Literal["80-10-10", "all_mask"] = knob(
        "80-10-10", "what replaces a masked token: [MASK], a random token or the token itself; or always [MASK]"
    )

    def build(self, builder: Builder) -> TrainingModel:
        """Return a backbone, states (B, T, D), with a head; training gives it the reference."""
        return SelectiveMaskedModel(self, builder)

    def labelled_fraction(self, progress: Progress) -> float:
        """Return ``mask_rate * keep``: the share of a row's T tokens that count."""
        return self.mask_rate * at(self.keep, progress)

    def scored(self, tokens: int, length: int) -> int:
        """Return the masked slots (N,) of so many tokens; see :meth:`Objective.scored`."""
        return tokens * labels_per_row(length, self.mask_rate) // length

    def shown_rows(self, batch: Batch, vocabulary: Vocabulary, progress: Progress, seed: int) -> list[list[Shown]]:
        """Return rows (B, T) as both models read them; which masked tokens count only the models know."""
        seen = corrupted(self, Corruption(vocabulary, CPU), batch, seed)
        return shown(batch, seen.tokens_BT, labelled_places(seen), vocabulary.mask)


def corrupted(choice: SelectiveMasked, corrupt: Corruption, batch: Batch, seed: int) -> Labelled:
    """Return rows (B, T) corrupted as a choice says, with N = B * K slots."""
    return corrupt(batch, choice.mask_rate, seed, always_mask=choice.corruption == "all_mask")


class SelectiveMaskedModel(Corrupting, ChoosingModel):
    """A masked model whose loss is over chosen tokens, logits (N, V); arguments as for :class:`TokenPrediction`."""

    choice: SelectiveMasked

    def asked(self, batch: Batch) -> Tensor:
        """Return how many tokens of each row are masked, (B,): as many as slots, or all ordinary ones."""
        special = batch.tokens_BT.new_tensor(self.vocabulary.special)
        ordinary_B = torch.isin(batch.tokens_BT, special, invert=True).sum(1)
        return ordinary_B.clamp(max=labels_per_row(batch.tokens_BT.shape[1], self.choice.mask_rate))

    def labelled(self, batch: Batch, progress: Progress) -> Labelled:
        """Return corrupted rows (B, T) and every masked token: which of them count is decided later."""
        return corrupted(self.choice, self._corrupt(batch), batch, self.seed)
