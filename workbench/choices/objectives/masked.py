"""Masked language modelling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch

from workbench.choices.choice import knob
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.objectives.corruption import Corruption, labels_per_row
from workbench.choices.objectives.frequencies import entropy, frequencies, predictable
from workbench.choices.objectives.objective import Builder, Labelled, Objective, TrainingModel
from workbench.choices.objectives.preview import Shown, row_of, shown
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.choices.progress import Budget, Progress
from workbench.choices.schedules.schedule import Scheduled, at, scheduled_knob

START = Progress(0, 0, 0.0, Budget())


class Masked(Objective):
    """Predict masked tokens from both sides (BERT).

    L = mean over labelled positions of -log p(token | corrupted row), labels on exactly round(mask_rate * T) ordinary
    tokens of every row. The held-out score hides every scored token (``objectives/heldout.py``), so that recipes
    compare and copying what is visible counts for nothing.

    Source: Devlin et al. 2019 (arXiv 1810.04805), section 3.1. We fix the number of labels per row instead of drawing
    each position by itself, so that shapes are static.
    """

    kind: Literal["masked"] = "masked"
    mask_rate: Scheduled = scheduled_knob(0.15, "share of positions that are labelled", gt=0, lt=1)
    corruption: Literal["80-10-10", "all_mask"] = knob(
        "80-10-10", "what replaces a labelled token: [MASK], a random token or the token itself; or always [MASK]"
    )

    def build(self, builder: Builder) -> TrainingModel:
        """Return a backbone, states (B, T, D), with a head; the builder's seed decides every mask."""
        return MaskedModel(self, builder)

    def labelled_fraction(self, progress: Progress) -> float:
        """``mask_rate`` at ``progress``: the share of a row's tokens, before rounding to whole ones."""
        return at(self.mask_rate, progress)

    def preview(self, tokens: Sequence[int], vocabulary: Vocabulary, seed: int = 0) -> list[Shown]:
        """Return the document (T,) as the first step of a run would corrupt it, at the rate of that step."""
        seen = corrupted(self, Corruption(vocabulary, torch.device("cpu")), row_of(tokens), START, seed)
        assert seen.index_N is not None
        labelled = set(seen.index_N[seen.weight_N > 0].tolist())
        return shown(tokens, seen.tokens_BT[0].tolist(), labelled, vocabulary.mask)

    def context_free_loss(self, counts_V: np.ndarray, vocabulary: Vocabulary) -> float | None:
        """Nats per label of the best guess from word frequencies, counts (V,), and the token that is visible.

        None under ``all_mask``, which shows no labelled token.

        With p the frequencies and r = 1 / R for each of R replacements, a visible token x was kept with probability
        p(x) / (p(x) + r). So the best guess is q(w | x) = (p(x) [w = x] + r p(w)) / (p(x) + r), and p under [MASK].
        """
        if self.corruption == "all_mask":
            return None
        ordinary_V = predictable(vocabulary, causal=False)
        p_W = frequencies(counts_V, ordinary_V)[ordinary_V]
        hidden = entropy(p_W)
        r = 1 / len(p_W)
        log_W, log_seen_W = np.log(p_W), np.log(p_W + r)
        # The label is the visible token (kept, or replaced by itself), or any other.
        same_W = p_W * (1 + r) * (log_seen_W - log_W - math.log1p(r))
        other_W = r * ((1 - p_W) * (log_seen_W - math.log(r)) + hidden + p_W * log_W)
        return 0.8 * hidden + 0.1 * float((same_W + other_W).sum())


def corrupted(choice: Masked, corrupt: Corruption, batch: Batch, progress: Progress, seed: int) -> Labelled:
    """Return rows (B, T) corrupted as a choice says at ``progress``, with B * round(rate * T) slots."""
    return corrupt(batch, at(choice.mask_rate, progress), seed, always_mask=choice.corruption == "all_mask")


class MaskedModel(TokenPrediction):
    """Masked language modelling, logits (N, V) of labelled slots; arguments as for :class:`TokenPrediction`."""

    choice: Masked
    # No buffer: derived from the vocabulary, so it has no place in a checkpoint.
    _tables: Corruption | None = None

    def counts(self, batch: Batch, progress: Progress) -> dict[str, int]:
        """Return the labels of rows (B, T): round(rate * T) in each, or all ordinary tokens where these are fewer."""
        special = batch.tokens_BT.new_tensor(self.vocabulary.special)
        ordinary_B = torch.isin(batch.tokens_BT, special, invert=True).sum(1)
        slots = labels_per_row(batch.tokens_BT.shape[1], at(self.choice.mask_rate, progress))
        return {"loss": int(ordinary_B.clamp(max=slots).sum())}

    def labelled(self, batch: Batch, progress: Progress) -> Labelled:
        """Return corrupted rows (B, T) at the rate of ``progress``, with B * round(rate * T) slots."""
        # Read from the choice every time: a knob turned during the run replaces the choice.
        return corrupted(self.choice, self._corrupt(batch), batch, progress, self.seed)

    def _corrupt(self, batch: Batch) -> Corruption:
        device = batch.tokens_BT.device
        # At the first batch instead of in __init__: only then is it certain on which device the run takes place.
        if self._tables is None or self._tables.replaceable_R.device != device:
            self._tables = Corruption(self.vocabulary, device)
        return self._tables
