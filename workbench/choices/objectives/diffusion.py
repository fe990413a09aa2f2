"""Masked diffusion: hide a random share of each row and predict all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from workbench.choices.choice import knob
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.corruption import SELECT, labelled_places, spread
from workbench.choices.objectives.draws import uniforms
from workbench.choices.objectives.objective import Builder, Labelled, Objective, TrainingModel
from workbench.choices.objectives.preview import START, Preview, Shown, row_of, shown
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.choices.progress import Progress

# Shape legend: B rows, T positions, N = B * T slots.

RATES = 7
"""Purpose of :func:`~workbench.choices.objectives.corruption.spread`: the rate of each row."""
SEED = 0x5EED_0000_0001
"""Seed of the second score's rates and masks: recipes' are below 2**31, so no training mask is among them."""


class Diffusion(Objective):
    """Hide a share t of each row, drawn anew from (0, 1), and predict what is hidden (masked diffusion).

    L = sum over hidden tokens of -log p(token | row) / t, divided by the number of all tokens but the first of
    documents: an upper bound of the nats per token, in expectation over t.

    Rates of neighbouring rows lie evenly over (0, 1), which keeps the variance of L low. Which tokens are hidden is a
    function of the seed, the sample and the place alone.

    Source: Sahoo et al. 2024, "Simple and Effective Masked Diffusion Language Models" (arXiv 2406.07524), equation 8
    with the linear schedule; Nie et al. 2025, LLaDA (arXiv 2502.09992), equation 3.
    """

    kind: Literal["diffusion"] = "diffusion"
    generates: ClassVar[Literal["next", "unmask"] | None] = "unmask"
    second_score: ClassVar[str] = "diffusion_bound"
    least_rate: float = knob(0.001, "least share hidden; its inverse bounds the weight of a token", gt=0, lt=0.5)

    def build(self, builder: Builder) -> TrainingModel:
        """Return a backbone, states (B, T, D), with a head; the builder's seed decides rates and masks."""
        return DiffusionModel(self, builder)

    def labelled_fraction(self, progress: Progress) -> float:
        """1: the loss is a mean over each of a row's T tokens, which hidden ones stand for by their weight."""
        return 1.0

    def shown_rows(self, batch: Batch, vocabulary: Vocabulary, progress: Progress, seed: int) -> list[list[Shown]]:
        """Return rows (B, T) with the share hidden that each row draws."""
        seen = hidden_rows(batch, vocabulary, self.least_rate, seed)
        return shown(batch, seen.tokens_BT, labelled_places(seen), vocabulary.mask)

    def previews(self, tokens: Sequence[int], vocabulary: Vocabulary, seed: int = 0) -> list[Preview]:
        """See :meth:`Objective.previews`: the first row (T,) that hides between a third and two thirds."""
        rate_S = spread(seed, RATES, torch.arange(8))
        sample = int(((rate_S > 1 / 3) & (rate_S < 2 / 3)).int().argmax())
        words = f"Each row hides a share of its own, here {float(rate_S[sample]):.0%}."
        return [Preview(words, self.shown_rows(row_of(tokens, sample), vocabulary, START, seed)[0])]


def hidden_rows(batch: Batch, vocabulary: Vocabulary, least_rate: float, seed: int) -> Labelled:
    """Return rows (B, T) with a share t of each hidden, and N = B * T slots: 1 / t at hidden tokens, 0 elsewhere."""
    tokens_BT = batch.tokens_BT
    rate_B1 = (least_rate + (1 - least_rate) * spread(seed, RATES, batch.samples_B))[:, None]
    draw_BT = uniforms(seed, SELECT, batch.samples_B, tokens_BT.shape[1])
    hidden_BT = (draw_BT < rate_B1) & may_hide(tokens_BT, vocabulary)
    weight_BT = torch.where(hidden_BT, 1 / rate_B1, 0).float()
    shown_BT = tokens_BT.masked_fill(hidden_BT, vocabulary.mask)
    return Labelled(shown_BT, None, tokens_BT.flatten(), weight_BT.flatten())


def may_hide(tokens_BT: Tensor, vocabulary: Vocabulary) -> Tensor:
    """Return which tokens of rows may be hidden, bool (B, T): all but beginnings of documents and padding."""
    return torch.isin(tokens_BT, tokens_BT.new_tensor([vocabulary.cls, vocabulary.pad, vocabulary.mask]), invert=True)


class DiffusionModel(TokenPrediction):
    """A backbone that predicts whatever is hidden, logits (N, V); arguments as for :class:`TokenPrediction`."""

    choice: Diffusion

    def counts(self, batch: Batch, progress: Progress) -> dict[str, int]:
        """Return the tokens of rows (B, T) that may be hidden, whether they are or not: the bound is per token."""
        return {"loss": int(may_hide(batch.tokens_BT, self.vocabulary).sum())}

    def labelled(self, batch: Batch, progress: Progress) -> Labelled:
        """Return rows (B, T) with hidden tokens, and a slot for each of the N = B * T places."""
        return hidden_rows(batch, self.vocabulary, self.choice.least_rate, self.seed)

    def second(self, batch: Batch, seen: Labelled, plan: LayerPlan) -> Tensor:
        """Return the terms of the bound by token, (N,): one draw of rates and masks, the same for every model."""
        assert seen.index_N is not None
        hidden = hidden_rows(batch, self.vocabulary, self.choice.least_rate, SEED)
        # The scored tokens stand one place behind their slots.
        place_N = seen.index_N + 1
        weight_N = hidden.weight_N[place_N] * seen.weight_N
        return self.nats(Labelled(hidden.tokens_BT, place_N, seen.labels_N, weight_N), batch, plan)
