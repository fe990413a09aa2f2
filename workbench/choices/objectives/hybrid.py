"""Masked and next-token prediction in one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from workbench.choices.choice import knob
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.causal import follows
from workbench.choices.objectives.corruption import CPU, Corrupting, Corruption, spread
from workbench.choices.objectives.layout import everywhere
from workbench.choices.objectives.objective import Builder, Labelled, Loss, Masks, Objective, TrainingModel
from workbench.choices.objectives.preview import START, Preview, Shown, row_of, shown, shown_next
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.choices.progress import Progress
from workbench.choices.schedules.schedule import Scheduled, at, scheduled_knob

# Shape legend: B rows, T positions, D width, N = B * T slots.

ROWS = 6
"""Purpose of :func:`~workbench.choices.objectives.corruption.spread`: which rows are causal."""


class Hybrid(Objective):
    """Read some rows from the left and others from both sides, with one model and one head (GPT-BERT).

    L = s * mean over causal rows of -log p(x_{t+1} | x_1 .. x_t)
      + (1 - s) * mean over hidden tokens of the other rows of -log p(x_{t+1} | corrupted row), s = ``causal_share``.

    A hidden token at t + 1 is predicted from the output at t, as a next token is: both read alike. So the first token
    of a row is never asked for. Which rows are causal is a function of the seed and the sample alone.

    Source: Charpentier & Samuel 2024, "GPT or BERT: why not both?" (arXiv 2410.24159), section 2. They fix the kind of
    row by GPU; we by sample, so that a step does not depend on how it is cut.
    """

    kind: Literal["hybrid"] = "hybrid"
    masks: ClassVar[Masks] = "by_row"
    shifted: ClassVar[bool] = True
    generates: ClassVar[Literal["next", "unmask"] | None] = "next"
    second_score: ClassVar[str] = "next_token_loss"
    causal_share: Scheduled = scheduled_knob(
        0.5, "share of rows that are read from the left, and of the loss", ge=0, le=1
    )
    mask_rate: Scheduled = scheduled_knob(0.15, "share of positions that are labelled in the other rows", gt=0, lt=1)
    corruption: Literal["80-10-10", "all_mask"] = knob(
        "80-10-10", "what replaces a labelled token: [MASK], a random token or the token itself; or always [MASK]"
    )

    def build(self, builder: Builder) -> TrainingModel:
        """Return a backbone, states (B, T, D), with a head; the builder's seed decides rows and masks."""
        return HybridModel(self, builder)

    @property
    def added_parts(self) -> tuple[str, ...]:
        """The masked rows: a mean over labels (N,) of their own."""
        return ("masked_rows",)

    def labelled_fraction(self, progress: Progress) -> float:
        """Return share of the T tokens of both kinds of rows: each token of a causal one predicts the next."""
        share = at(self.causal_share, progress)
        return share + (1 - share) * at(self.mask_rate, progress)

    def labels_in(self, counts: Mapping[str, int]) -> int:
        """Return the labels of all rows (B, T), whichever kind they are of."""
        return sum(counts.values())

    def shown_rows(self, batch: Batch, vocabulary: Vocabulary, progress: Progress, seed: int) -> list[list[Shown]]:
        """Return rows (B, T): the causal ones as they are, the others with what is hidden."""
        seen = masked_rows(self, Corruption(vocabulary, CPU), batch, progress, seed)
        asked_BT = seen.weight_N.view(batch.tokens_BT.shape).roll(1, dims=1) > 0
        masked = shown(batch, seen.tokens_BT, asked_BT, vocabulary.mask)
        causal = shown_next(batch, follows(batch))
        causal_B = causal_rows(self, batch, progress, seed).tolist()
        return [left if reads_left else both for left, both, reads_left in zip(causal, masked, causal_B, strict=True)]

    def previews(self, tokens: Sequence[int], vocabulary: Vocabulary, seed: int = 0) -> list[Preview]:
        """See :meth:`Objective.previews`: a row (T,) that is read from both sides, and one from the left."""
        left_B = causal_rows(self, row_of([0])._replace(samples_B=torch.arange(64)), START, seed).int()
        share = at(self.causal_share, START)
        kinds = {f"{1 - share:.0%} of the rows are read from both sides:": 1 - left_B,
                 f"{share:.0%} are read from the left:": left_B}  # fmt: skip
        return [
            Preview(words, self.shown_rows(row_of(tokens, int(of_B.argmax())), vocabulary, START, seed)[0])
            for words, of_B in kinds.items()
            if of_B.any()
        ]


def causal_rows(choice: Hybrid, batch: Batch, progress: Progress, seed: int) -> Tensor:
    """Return which rows of a batch are read from the left, bool (B,)."""
    return spread(seed, ROWS, batch.samples_B) < at(choice.causal_share, progress)


def masked_rows(choice: Hybrid, corrupt: Corruption, batch: Batch, progress: Progress, seed: int) -> Labelled:
    """Return rows (B, T) corrupted at the rate of ``progress``, every label at the slot before its token; N = B * T."""
    always_mask = choice.corruption == "all_mask"
    seen = everywhere(corrupt(batch, at(choice.mask_rate, progress), seed, always_mask=always_mask))
    # The first token of a row has none before it to be read from.
    weight_BT = seen.weight_N.view(batch.tokens_BT.shape).roll(-1, dims=1) * follows(batch)
    return Labelled(seen.tokens_BT, None, batch.tokens_BT.roll(-1, dims=1).flatten(), weight_BT.flatten())


class HybridModel(Corrupting, TokenPrediction):
    """Masked rows and causal ones, logits (N, V); arguments as for :class:`TokenPrediction`."""

    choice: Hybrid

    def labelled(self, batch: Batch, progress: Progress) -> Labelled:
        """Return rows (B, T), the causal ones as they are, and N = B * T slots, each for the token behind it."""
        masked = masked_rows(self.choice, self._corrupt(batch), batch, progress, self.seed)
        causal_B = causal_rows(self.choice, batch, progress, self.seed)
        causal_B1 = causal_B[:, None]
        weight_BT = masked.weight_N.view(batch.tokens_BT.shape)
        return Labelled(
            torch.where(causal_B1, batch.tokens_BT, masked.tokens_BT),
            None,
            masked.labels_N,
            torch.where(causal_B1, follows(batch), weight_BT).flatten(),
            causal_B,
        )

    def counts(self, batch: Batch, progress: Progress) -> dict[str, int]:
        """Return the labels of rows (B, T) by kind of row: those of the step, made once more."""
        seen = self.labelled(batch, progress)
        causal, masked = weights_by_kind(seen, batch).sum(1).tolist()
        return {"causal_rows": int(causal), "masked_rows": int(masked)}

    def weights(self, progress: Progress) -> dict[str, float]:
        """Return the share of each kind of rows (B, T), whatever number of labels it has."""
        share = at(self.choice.causal_share, progress)
        return {"causal_rows": share, "masked_rows": 1 - share}

    def forward(self, batch: Batch, plan: LayerPlan, progress: Progress) -> Loss:
        """Return the nats of tokens (B, T) summed over the labels of each kind of row, and right predictions."""
        seen, batch = self.inputs(batch, progress)
        weight_2N = weights_by_kind(seen, batch)
        nats_2, hits_2 = self._score_region(self.states(seen, batch, plan), seen.labels_N, weight_2N)
        hits_2 = hits_2.detach()
        return Loss(
            {"causal_rows": nats_2[0], "masked_rows": nats_2[1]},
            {"causal_rows_accuracy": hits_2[0], "masked_rows_accuracy": hits_2[1]},
        )

    def read(self, seen: Labelled, causal: bool | None) -> Labelled:
        """See :meth:`TokenPrediction.read`: a [MASK] is read at the slot (N,) before it, from both sides."""
        rows = len(seen.tokens_BT)
        if causal:
            # By row, as in training: a window then reaches as far as it did there.
            return seen._replace(causal=torch.ones(rows, dtype=torch.bool, device=seen.tokens_BT.device))
        assert seen.index_N is not None
        return seen._replace(index_N=seen.index_N - 1)

    def second(self, batch: Batch, seen: Labelled, plan: LayerPlan) -> Tensor:
        """See :meth:`TrainingModel.second`: nats (N,) of every next token under the causal mask."""
        return self.nats(self.read(seen, True), batch, plan)


def weights_by_kind(seen: Labelled, batch: Batch) -> Tensor:
    """Return the labels' weights, (2, N): those of causal rows, then those of masked ones."""
    assert isinstance(seen.causal, Tensor)
    slots, length = len(seen.weight_N), batch.tokens_BT.shape[1]
    index_N = torch.arange(slots, device=seen.weight_N.device) if seen.index_N is None else seen.index_N
    causal_N = seen.causal[index_N // length]
    return torch.stack([seen.weight_N * causal_N, seen.weight_N * ~causal_N])
