"""Masked language modelling."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F

from workbench.base.errors import DataError
from workbench.choices.architectures.architecture import Architecture
from workbench.choices.choice import Problem, knob
from workbench.choices.data.order import RowOrder
from workbench.choices.data.tokens import Batch, PreparedData, TokenStore, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.corruption import CPU, Corrupting, Corruption, Picks, labelled_places, labels_per_row
from workbench.choices.objectives.frequencies import entropy, frequencies, predictable
from workbench.choices.objectives.groups import Selection
from workbench.choices.objectives.objective import Builder, Labelled, Loss, TrainingModel
from workbench.choices.objectives.preview import START, Preview, Shown, shown
from workbench.choices.objectives.sampled_softmax import PredictsWords
from workbench.choices.objectives.sentence_pairs import (
    PairedRows,
    Sentence,
    SentenceHead,
    changed,
    check_sentences,
    pairs_of,
)
from workbench.choices.objectives.span_boundary import SpanBoundary, edges_of
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.choices.progress import Progress
from workbench.choices.schedules.schedule import Scheduled, at, scheduled_knob


class Masked(PredictsWords):
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
    selection: Selection = knob(
        "token", "labelled together: single tokens, whole words, spans of 1 to 10 words, or n-grams of 1 to 3 words"
    )
    span_boundary: bool = knob(
        False, "predict the tokens of a span once more, from the two tokens around it and their places (SpanBERT)"
    )
    sentence: Sentence = knob(
        "none", "tell whether two segments are swapped (order: ALBERT), or of two documents (next: BERT)"
    )
    sentence_weight: Scheduled = scheduled_knob(1.0, "weight of the sentence part of the loss", ge=0, le=100)

    def build(self, builder: Builder) -> TrainingModel:
        """Return a backbone, states (B, T, D), with a head; the builder's seed decides every mask."""
        return MaskedModel(self, builder)

    @property
    def added_parts(self) -> tuple[str, ...]:
        """``span_boundary``, over the slots (N,), and ``sentence``, over the rows (B,), where they are on."""
        return ("span_boundary",) * self.span_boundary + ("sentence",) * (self.sentence != "none")

    @property
    def reads_text(self) -> bool:
        """True where :meth:`check_data` looks for something in rows (B, T)."""
        return self.selection != "token" or self.sentence != "none"

    def arrange(self, order: RowOrder, vocabulary: Vocabulary) -> RowOrder:
        """Return rows (B, T) with a pair of segments in each, where the sentence part is on."""
        return order if self.sentence == "none" else PairedRows(order, vocabulary, self.sentence)

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse a span-boundary head without spans: slots (N,) that stand alone have no span around them."""
        yield from super().problems(recipe)
        if self.span_boundary and self.selection != "span":
            yield Problem(
                "objective.span_boundary",
                f"needs spans, and selection '{self.selection}' has none; set objective.selection to 'span', or "
                "span_boundary to false",
            )

    def check_data(self, prepared: PreparedData) -> None:
        """Refuse words, spans (N,) of words and n-grams where the vocabulary does not say where a word begins."""
        if self.sentence != "none":
            check_sentences(prepared.train, prepared.vocabulary, self.sentence)
        pieces = prepared.vocabulary.pieces
        if self.selection != "token" and pieces is not None and not pieces.mark:
            raise DataError(
                f"objective.selection '{self.selection}' counts words, and the tokenizer does not mark where one "
                "begins (by '##', '\u0120' or '\u2581'); use selection 'token', or a tokenizer that does ('trained')"
            )

    def labelled_fraction(self, progress: Progress) -> float:
        """Return ``mask_rate`` at ``progress``: the share of a row's tokens, before rounding to whole ones."""
        return at(self.mask_rate, progress)

    def shown_rows(self, batch: Batch, vocabulary: Vocabulary, progress: Progress, seed: int) -> list[list[Shown]]:
        """Return rows (B, T) corrupted at the rate of ``progress``; a pair of another order or text is marked."""
        seen = corrupted(self, Corruption(vocabulary, CPU), batch, progress, seed)
        rows = shown(batch, seen.tokens_BT, labelled_places(seen), vocabulary.mask)
        if self.sentence == "none":
            return rows
        first_B, paired_B = pairs_of(batch, vocabulary.sep)
        columns = (first_B % batch.tokens_BT.shape[1]).tolist()
        for index in (changed(batch, seed).bool() & paired_B).nonzero()[:, 0].tolist():
            pieces, row = batch.documents_BT[index].tolist(), rows[index]
            for place, each in enumerate(row):
                if pieces[place] == pieces[columns[index]] and each.mark == "read":
                    row[place] = each._replace(mark="swapped")
        return rows

    def previews(self, tokens: Sequence[int], vocabulary: Vocabulary, seed: int = 0) -> list[Preview]:
        """See :meth:`Objective.previews`, row (T,): of the sentence part a pair that is swapped, else the true one."""
        if self.sentence == "none":
            return super().previews(tokens, vocabulary, seed)
        # Twice: no other document is at hand, and a pair needs one that might take its place.
        store = TokenStore(np.tile(tokens, 2), np.arange(3) * len(tokens))
        order = self.arrange(RowOrder(store, len(tokens), seed), vocabulary)
        batch = order.batch(np.arange(32))
        swapped_B = changed(batch, seed) == int(self.sentence == "order")
        row = self.shown_rows(batch, vocabulary, START, seed)[int(swapped_B.int().argmax())]
        doubt = "two sentences are swapped" if self.sentence == "order" else "second part is of another document"
        return [Preview(f"In half of the rows the {doubt}; the model says whether that is so.", row)]

    def context_free_loss(self, counts_V: np.ndarray, vocabulary: Vocabulary) -> float | None:
        """Return nats per label of the best guess from word frequencies, counts (V,), and the token that is visible.

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
    """Return rows (B, T) corrupted as a choice says at ``progress``, with as many slots as ``slots_per_row`` says."""
    always_mask = choice.corruption == "all_mask"
    return corrupt(batch, at(choice.mask_rate, progress), seed, always_mask=always_mask, selection=choice.selection)


class MaskedModel(Corrupting, TokenPrediction):
    """Masked language modelling, logits (N, V) of labelled slots; arguments as for :class:`TokenPrediction`."""

    choice: Masked

    def __init__(self, choice: Masked, builder: Builder, architecture: Architecture | None = None) -> None:
        super().__init__(choice, builder, architecture)
        width = self.backbone.embedding.weight.shape[1]
        self.boundary = SpanBoundary(width) if choice.span_boundary else None
        self.sentences = SentenceHead(width) if choice.sentence != "none" else None

    def counts(self, batch: Batch, progress: Progress) -> dict[str, int]:
        """Return the labels of rows (B, T): as many as slots, or all ordinary tokens where these are fewer.

        Of words, spans and n-grams as many as whole words leave: the pick of the step, made once more.
        """
        added: dict[str, int] = {}
        if self.sentences is not None:
            added["sentence"] = int(pairs_of(batch, self.vocabulary.sep)[1].sum())
        if self.choice.selection != "token":
            picks = self._pick(batch, progress)
            if self.boundary is not None:
                added = {"span_boundary": int(edges_of(batch, picks).counts_N.sum())} | added
            return {"loss": int(picks.counts_BK.sum())} | added
        special = batch.tokens_BT.new_tensor(self.vocabulary.special)
        ordinary_B = torch.isin(batch.tokens_BT, special, invert=True).sum(1)
        slots = labels_per_row(batch.tokens_BT.shape[1], at(self.choice.mask_rate, progress))
        return {"loss": int(ordinary_B.clamp(max=slots).sum())} | added

    def weights(self, progress: Progress) -> dict[str, float]:
        """Return the weight of the sentence part, whose labels are rows (B,); the others weigh 1."""
        return {} if self.sentences is None else {"sentence": at(self.choice.sentence_weight, progress)}

    def labelled(self, batch: Batch, progress: Progress) -> Labelled:
        """Return corrupted rows (B, T) at the rate of ``progress``, with as many slots as ``slots_per_row`` says."""
        # Read from the choice every time: a knob turned during the run replaces the choice.
        return corrupted(self.choice, self._corrupt(batch), batch, progress, self.seed)

    def forward(self, batch: Batch, plan: LayerPlan, progress: Progress) -> Loss:
        """Return the nats of tokens (B, T) summed over labels, and those of the parts that were asked for."""
        if self.boundary is None and self.sentences is None:
            return super().forward(batch, plan, progress)
        picks, always_mask = self._pick(batch, progress), self.choice.corruption == "all_mask"
        together = self.choice.selection == "span"
        seen = self._corrupt(batch).show(batch, picks, self.seed, always_mask, together)
        assert seen.index_N is not None
        index = [seen.index_N]
        if self.boundary is not None:
            edges = edges_of(batch, picks)
            index += [edges.left_N, edges.right_N]
        if self.sentences is not None:
            first_B, paired_B = pairs_of(batch, self.vocabulary.sep)
            index.append(first_B)
        # All places in one pass; the last block computes them alone.
        states = self.backbone(seen.tokens_BT, batch, plan, torch.cat(index)).split([len(each) for each in index])
        loss = self.loss_of(*self.scores(states[0], seen.labels_N, seen.weight_N, batch))
        if self.boundary is not None:
            y_ND = self.boundary(states[1], states[2], edges.place_N)
            nats, _ = self._score_region(y_ND, seen.labels_N, edges.counts_N.float())
            loss.parts["span_boundary"] = nats
        if self.sentences is not None:
            logits_B2, labels_B = self.sentences(states[-1]).float(), changed(batch, self.seed)
            nats_B = F.cross_entropy(logits_B2, labels_B, reduction="none")
            loss.parts["sentence"] = (nats_B * paired_B).sum()
            loss.metrics["sentence_accuracy"] = ((logits_B2.argmax(-1) == labels_B) & paired_B).sum().float()
        return loss

    def lay_out(self, head: str, padding: str) -> None:
        """See :meth:`TrainingModel.lay_out`; edges (N,) of spans are known in packed rows (B, T) alone."""
        (TrainingModel if self.choice.added_parts else TokenPrediction).lay_out(self, head, padding)

    def _pick(self, batch: Batch, progress: Progress) -> Picks:
        rate = at(self.choice.mask_rate, progress)
        return self._corrupt(batch).pick(batch, rate, self.seed, self.choice.selection)
