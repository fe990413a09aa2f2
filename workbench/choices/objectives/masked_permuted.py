"""Masked and permuted language modelling: hidden tokens are predicted one after another, in an order drawn anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from workbench.choices.architectures.architecture import Architecture
from workbench.choices.architectures.modular import Modular
from workbench.choices.choice import Problem, knob
from workbench.choices.data.tokens import Batch, PreparedData, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.corruption import CPU, Corrupting, Corruption, random_bits_at
from workbench.choices.objectives.groups import Selection
from workbench.choices.objectives.heldout import SEED
from workbench.choices.objectives.masked import Masked, corrupted
from workbench.choices.objectives.objective import Builder, Labelled, Masks, TrainingModel
from workbench.choices.objectives.preview import START, Preview, Shown, row_of
from workbench.choices.objectives.sampled_softmax import PredictsWords
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.choices.progress import Progress
from workbench.ops.attention import Sight

# Shape legend: B rows, T positions, K predicted positions of a row, N = B * K, S = T + 2 K columns.

ORDER = 8
"""Purpose of :func:`~workbench.choices.objectives.corruption.random_bits`: the order of prediction."""


class MaskedPermuted(PredictsWords):
    """Predict hidden tokens in a random order, each from the text, those before it, and the places of all (MPNet).

    L = mean over the predicted z_k of -log p(x at z_k | unpredicted tokens, x at z_1 .. z_{k-1}, [MASK] at z_k .. z_K).

    A row of T tokens gains two columns for each of its K predicted ones. The first stand where nothing is known yet;
    the others are read, and seen by nobody. Who sees whom stands for the permutation: attention does not know in which
    order columns stand, so nothing is moved. Every column sees each place of its document once, as a token or as a
    [MASK].

    Source: Song et al. 2020, "MPNet: Masked and Permuted Pre-training for Language Understanding" (arXiv 2004.09297),
    equation 5 and figure 2.
    """

    kind: Literal["masked_permuted"] = "masked_permuted"
    masks: ClassVar[Masks] = "by_pair"
    # Not scheduled: every row has as many columns as the first, whatever the step.
    mask_rate: float = knob(0.15, "share of positions that are predicted", gt=0, lt=1)
    corruption: Literal["80-10-10", "all_mask"] = knob(
        "80-10-10",
        "what stands for a token not known yet: [MASK], a random token or the token itself; or always [MASK]",
    )
    selection: Selection = knob(
        "token", "predicted together: single tokens, whole words, spans of 1 to 10 words, or n-grams of 1 to 3 words"
    )

    def build(self, builder: Builder) -> TrainingModel:
        """Return a backbone, states (B, T, D), with a head; the builder's seed decides what is predicted, and when."""
        return MaskedPermutedModel(self, builder)

    @property
    def added_parts(self) -> tuple[str, ...]:
        """No loss beside the first, but columns: a row is S wide where engines that know one head expect T."""
        return ("columns of [MASK]",)

    @property
    def hides(self) -> Masked:
        """Return the masked objective that hides the same tokens of rows (B, T)."""
        return Masked(mask_rate=self.mask_rate, corruption=self.corruption, selection=self.selection)

    @property
    def reads_text(self) -> bool:
        """True where :meth:`check_data` looks for words in rows (B, T)."""
        return self.hides.reads_text

    def check_data(self, prepared: PreparedData) -> None:
        """Refuse groups (N,) of words where the vocabulary does not say where a word begins."""
        self.hides.check_data(prepared)

    def context_free_loss(self, counts_V: np.ndarray, vocabulary: Vocabulary) -> float | None:
        """See :meth:`Masked.context_free_loss`, counts (V,): a token that is asked may be shown here as well."""
        return self.hides.context_free_loss(counts_V, vocabulary)

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse models whose attention goes by something else than a mask (B, S, S),
        or whose input tells a neighbour.
        """
        architecture, way_out = recipe.architecture, "or choose objective 'masked'"
        if not isinstance(architecture, Modular):
            yield Problem(
                "architecture.kind",
                f"'{architecture.kind}' cannot be told which column sees which, as objective '{self.kind}' needs; use "
                f"'pre_ln' or 'post_ln', {way_out}",
            )
            return
        yield from super().problems(recipe)
        if architecture.local_window is not None:
            yield Problem(
                "architecture.local_window",
                f"{architecture.local_window}: it is counted in columns, and objective '{self.kind}' adds columns "
                f"for places elsewhere; leave it empty, {way_out}",
            )
        if architecture.bigram_rows:
            yield Problem(
                "architecture.bigram_rows",
                f"{architecture.bigram_rows}: a pair tells of the token before, which objective '{self.kind}' may be "
                f"asking for; leave it empty, {way_out}",
            )

    def labelled_fraction(self, progress: Progress) -> float:
        """Return ``mask_rate``: the share of a row's T tokens, before rounding to whole ones."""
        return self.mask_rate

    def flops(
        self, architecture: Architecture, vocabulary_size: int, plans: Sequence[LayerPlan], tokens: int, labelled: int,
        span: float, length: int,
    ) -> float:  # fmt: skip
        """Return the useful FLOPs of one step; every predicted token is three columns, each of which sees ``span``."""
        return super().flops(architecture, vocabulary_size, plans, tokens + 2 * labelled, labelled, span, length)

    def previews(self, tokens: Sequence[int], vocabulary: Vocabulary, seed: int = 0) -> list[Preview]:
        """Return the document (T,) as it is read: what is not predicted, then what is, in the order of prediction."""
        batch = row_of(tokens)
        row, turn_T = (
            self.shown_rows(batch, vocabulary, START, seed)[0],
            self._turns(batch, vocabulary, seed)[0].tolist(),
        )
        # What is not predicted has one turn, -1, and stays in its order.
        places = sorted(range(len(row)), key=turn_T.__getitem__)
        read = [
            row[place]._replace(mark="permuted") if row[place].mark == "read" and place != column else row[place]
            for column, place in enumerate(places)
        ]
        return [Preview("In the order in which it is read: what is predicted comes last.", read)]

    def shown_rows(self, batch: Batch, vocabulary: Vocabulary, progress: Progress, seed: int) -> list[list[Shown]]:
        """Return rows (B, T) with what is predicted of them; a token stands where it does in the text."""

        def place(token: int, turn: int) -> Shown:
            return Shown(token, "predicted", token) if turn >= 0 else Shown(token, "read")

        turns_BT = self._turns(batch, vocabulary, seed)
        return [list(map(place, *row)) for row in zip(batch.tokens_BT.tolist(), turns_BT.tolist(), strict=True)]

    def _turns(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Tensor:
        hidden = hidden_places(self, Corruption(vocabulary, CPU), batch, seed)
        return by_place(order_of(hidden, batch, seed), hidden, batch)


class Hidden(NamedTuple):
    """Places of rows that are predicted.

    Attributes:
        column_BK: places in the row.
        counts_BK: whether it is predicted; False for a slot that only keeps the shape static.
        shown_BK: ids that stand there while the true token is not known.
    """

    column_BK: Tensor
    counts_BK: Tensor
    shown_BK: Tensor


def hidden_places(choice: MaskedPermuted, corrupt: Corruption, batch: Batch, seed: int) -> Hidden:
    """Return what is predicted of rows (B, T): what a masked model of the same knobs and seed is asked for."""
    seen = corrupted(choice.hides, corrupt, batch, START, seed)
    assert seen.index_N is not None
    rows, length = batch.tokens_BT.shape
    column_BK = seen.index_N.view(rows, -1) % length
    return Hidden(column_BK, seen.weight_N.view(rows, -1) > 0, seen.tokens_BT.gather(1, column_BK))


def order_of(hidden: Hidden, batch: Batch, seed: int) -> Tensor:
    """Return the turn of each slot, int64 (B, K): 0, 1, ... in one order of the row, -1 for a spare one."""
    bits_BK = random_bits_at(seed, ORDER, batch.samples_B, hidden.column_BK)
    # Spare slots come last. The place of each in the order is the inverse of the permutation that sorts the bits.
    key_BK = bits_BK.masked_fill(~hidden.counts_BK, torch.iinfo(torch.int64).max)
    rank_BK = key_BK.argsort(dim=1, stable=True).argsort(1)
    return torch.where(hidden.counts_BK, rank_BK, -1)


def by_place(rank_BK: Tensor, hidden: Hidden, batch: Batch) -> Tensor:
    """Return the turn of each place, int64 (B, T), from those of the slots; -1 where nothing is predicted."""
    return torch.full_like(batch.tokens_BT, -1).scatter(1, hidden.column_BK, rank_BK)


def two_streams(hidden: Hidden, batch: Batch, seed: int) -> tuple[Labelled, Batch]:
    """Return rows with two columns more for every predicted place, and who sees whom in them.

    Columns of tokens (T), of [MASK]s that are seen (K), and of [MASK]s that are asked (K). A column that knows the
    first k predicted tokens sees these, the unpredicted ones, and the [MASK]s of the others: k = 0 for unpredicted
    tokens and [MASK]s that are seen, r + 1 for the token predicted r-th, counted from 0, and r where it is asked for.

    Args:
        hidden: what is predicted. batch: rows (B, T) of true tokens. seed: decides the order.

    Returns:
        (B, S) tokens with N = B * K slots, and the batch (B, S) that goes with them.
    """
    column_BK, counts_BK, shown_BK = hidden
    tokens_BT, (rows, length), slots = batch.tokens_BT, batch.tokens_BT.shape, column_BK.shape[1]
    rank_BK = order_of(hidden, batch, seed)
    rank_BT = by_place(rank_BK, hidden, batch)
    zeros_BK = torch.zeros_like(rank_BK)
    known_BS = torch.cat([rank_BT + 1, zeros_BK, rank_BK.clamp(min=0)], 1)
    # Known from this number on, and up to this one: the bounds that no number reaches hide a column.
    since_BS = torch.cat([rank_BT, zeros_BK + length, zeros_BK + length], 1)
    until_BS = torch.cat([torch.full_like(tokens_BT, -1), rank_BK, zeros_BK - 1], 1)
    known_BS1 = known_BS[:, :, None]
    sees_BSS = (since_BS[:, None] < known_BS1) | (until_BS[:, None] >= known_BS1)
    place_BT = torch.arange(length, device=tokens_BT.device).expand(rows, length)
    place_BS = torch.cat([place_BT, column_BK, column_BK], 1)
    wide = Batch(
        torch.cat([tokens_BT, shown_BK, shown_BK], 1),
        batch.positions_BT.gather(1, place_BS),
        batch.documents_BT.gather(1, place_BS),
        batch.samples_B,
    )
    asked_BS = torch.arange(rows * place_BS.shape[1], device=tokens_BT.device).view(rows, -1)
    labels_N, weight_N = tokens_BT.gather(1, column_BK).flatten(), counts_BK.flatten().float()
    index_N = asked_BS[:, length + slots :].flatten()
    return Labelled(wide.tokens_BT, index_N, labels_N, weight_N, Sight(sees_BSS, place_BS, length)), wide


class MaskedPermutedModel(Corrupting, TokenPrediction):
    """Permuted prediction, logits (N, V) of what is asked; arguments as for :class:`TokenPrediction`.

    Everything but training reads it as a masked model, whose [MASK] sees both sides.
    """

    choice: MaskedPermuted

    def counts(self, batch: Batch, progress: Progress) -> dict[str, int]:
        """Return the predicted tokens of rows (B, T): the pick of the step, made once more."""
        return {"loss": int(hidden_places(self.choice, self._corrupt(batch), batch, self.seed).counts_BK.sum())}

    def inputs(self, batch: Batch, progress: Progress) -> tuple[Labelled, Batch]:
        """Return rows (B, S) with their columns of [MASK], and the slots (N,) that are asked."""
        return two_streams(hidden_places(self.choice, self._corrupt(batch), batch, self.seed), batch, self.seed)

    def labelled(self, batch: Batch, progress: Progress) -> Labelled:
        """Return the tokens (B, S) that the backbone sees and the N tokens that it must predict."""
        return self.inputs(batch, progress)[0]

    def lay_out(self, head: str, padding: str) -> None:
        """See :meth:`TrainingModel.lay_out`; rows (B, T) gain columns in packed rows alone."""
        TrainingModel.lay_out(self, head, padding)

    @torch.no_grad()
    def shares(self, batch: Batch, seen: Labelled, plan: LayerPlan) -> dict[str, tuple[Tensor, Tensor]]:
        """Return the loss of the scored tokens of rows (B, T) under an order of their own, the same for every model."""
        assert seen.index_N is not None
        scored_BT = torch.zeros_like(seen.tokens_BT, dtype=torch.bool)
        scored_BT.view(-1)[seen.index_N] = True
        slots = int(scored_BT.sum(1).max())
        column_BK = scored_BT.int().argsort(dim=1, descending=True, stable=True)[:, :slots]
        shown_BK = torch.full_like(column_BK, self.vocabulary.mask)
        # What another row scores stays hidden.
        true = batch._replace(tokens_BT=torch.where(scored_BT, batch.tokens_BT, seen.tokens_BT))
        asked, wide = two_streams(Hidden(column_BK, scored_BT.gather(1, column_BK), shown_BK), true, SEED)
        return {"permuted_loss": (self.nats(asked, wide, plan).sum(), asked.weight_N.sum())}
