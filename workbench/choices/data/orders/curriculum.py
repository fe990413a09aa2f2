"""Text from easy to hard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from workbench.base.errors import DataError
from workbench.choices.choice import Problem, knob
from workbench.choices.data.order import Arrange, EpochPlan, raw_words, shuffle, shuffled
from workbench.choices.data.orders.order import Order
from workbench.choices.data.tokens import PreparedData, TokenStore
from workbench.choices.progress import Progress

# Shape legend: D documents, R rows of an epoch, N tokens, V ids of the vocabulary.

_TOGETHER = 1 << 22
"""Tokens of documents that are scored at once: bounds the memory to some 32 MB."""
_DRAWS = 2
"""Stream of the draws of rows; 0 and 1 permute documents and rows."""
_POWERS = {"linear": 1, "root": 2}


class Curriculum(Order):
    """Documents from easy to hard, by their length, how rare their words are, or a reference model's loss.

    ``sorted`` reads every epoch from the easiest document to the hardest. With ``linear`` and ``root`` a share of the
    sorted rows is open, from which rows are drawn at random:

        c(x) = min(1, (c_0^p + (1 - c_0^p) x / pace_tokens)^(1/p))    p = 1 (linear) or 2 (root), x tokens read

    Once all rows are open, epochs are shuffled as without a curriculum. Rows count by their place in the run, so that
    the order is a function of (seed, sample index) whatever the budget is.

    Source: Platanios et al. 2019 (NAACL, arXiv 1903.09848), equations 6 and 7. There the whole sentence is a sample;
    here documents are sorted, packed and cut into rows.
    """

    kind: Literal["curriculum"] = "curriculum"
    by: Literal["length", "frequency", "loss"] = knob(
        "length", "how hard a document is: its length, how rare its tokens are, or its loss under a reference model"
    )
    run: str = knob("", "run whose checkpoint is the reference model, for the loss")
    step: int | None = knob(None, "step of that checkpoint; empty: the last of a finished run", ge=1, unit="steps")
    first: Literal["easy", "hard"] = knob("easy", "read first: the easy documents, or the hard ones")
    pacing: Literal["sorted", "linear", "root"] = knob(
        "root", "sorted: every epoch from one end to the other; linear, root: rows from a share that grows"
    )
    start: float = knob(0.1, "share of the rows that is open at the beginning, where it grows", gt=0, le=1)
    pace_tokens: int = knob(
        1_000_000, "tokens read until all rows are open, where the share grows", unit="tokens", ge=1, scale="log"
    )

    def open_share(self, tokens: int | np.ndarray) -> np.ndarray:
        """Return the share of the sorted rows that is open after so many tokens read.

        Example:
            >>> float(Curriculum(start=0.6, pace_tokens=100).open_share(50).round(3))
            0.825
        """
        power = _POWERS[self.pacing]
        first = self.start**power
        grown = first + (1 - first) * np.minimum(1.0, np.asarray(tokens) / self.pace_tokens)
        return np.minimum(1.0, grown ** (1 / power))

    def scheduled_values(self, progress: Progress) -> dict[str, float]:
        """Return the open share, ``open``, where it grows."""
        return {} if self.pacing == "sorted" else {"open": float(self.open_share(progress.tokens))}

    def unread(self, tokens: float, text_tokens: int | None) -> str:
        """See :meth:`Order.unread`: rows (R,) that are not opened, or that come after the end."""
        end = "hardest" if self.first == "easy" else "easiest"
        if self.pacing == "sorted":
            if text_tokens is None or tokens >= text_tokens:
                return ""
            return (
                f"'sorted' reads from one end to the other, and {tokens:,.0f} tokens are {tokens / text_tokens:.0%} of "
                f"the text: its {end} documents are never read; use a larger budget, or pacing 'linear'"
            )
        if tokens >= self.pace_tokens:
            return ""
        return (
            f"all rows are open after {self.pace_tokens:,} tokens, and the run ends at {tokens:,.0f} with "
            f"{float(self.open_share(int(tokens))):.0%} of them: its {end} documents are never read; lower "
            "data.order.pace_tokens"
        )

    def arrange(self, prepared: PreparedData) -> Arrange:
        """Return the plan of an epoch, D documents in R rows; scores the documents once."""
        hardness_D = self._hardness(prepared)
        if self.first == "hard":
            hardness_D = -hardness_D

        def plan(store: TokenStore, sequence_length: int, seed: int, epoch: int) -> EpochPlan:
            rows = store.tokens // sequence_length
            # Tokens before each row of the epoch.
            read_R = (epoch * rows + np.arange(rows)) * sequence_length
            if self.pacing != "sorted" and read_R[0] >= self.pace_tokens:
                return shuffle(store, sequence_length, seed, epoch)
            # Equally hard documents in another order each epoch.
            order_D = np.lexsort((shuffled(seed, epoch, 0, store.documents), hardness_D))
            rows_R = np.arange(rows) if self.pacing == "sorted" else self._drawn(read_R, seed, epoch)
            return EpochPlan.of(store, order_D, rows_R)

        return plan

    def _drawn(self, read_R: np.ndarray, seed: int, epoch: int) -> np.ndarray:
        """Return a row from those that are open at every place; shuffled ones from where all are."""
        rows = len(read_R)
        uniform_R = (raw_words(seed, epoch, _DRAWS, rows) >> np.uint64(11)) * 2.0**-53
        open_R = np.maximum(1, np.ceil(self.open_share(read_R) * rows))
        drawn_R = np.floor(uniform_R * open_R).astype(np.int64)
        return np.where(read_R < self.pace_tokens, drawn_R, shuffled(seed, epoch, 1, rows))

    @property
    def reference(self) -> tuple[str, int | None] | None:
        """Return run and step of the reference model; None where the order goes by the text alone."""
        return (self.run, self.step) if self.by == "loss" else None

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Yield a loss without a reference model, and a reference model without a use."""
        if self.by == "loss" and not self.run:
            yield Problem(
                "data.order.run", "order by loss needs a reference model: name a run, or use 'length' or 'frequency'"
            )
        elif self.by != "loss" and (self.run or self.step):
            yield Problem(
                "data.order.by", f"'{self.by}' asks no reference model; use 'loss', or leave out run and step"
            )

    def problems_together(self, recipe: Any, processes: int) -> Iterator[Problem]:
        """Yield that a reference model is read by one process."""
        if self.reference:
            yield Problem("data.order.by", "one process alone reads a reference model; use 'length' or 'frequency'")

    def _hardness(self, prepared: PreparedData) -> np.ndarray:
        """Return a number for each document, (D,), that grows with how hard it is."""
        if self.by == "loss":
            if prepared.losses_D is None:
                raise DataError(
                    "data.order: the order goes by a reference model's losses, which only a run in training has at "
                    "hand; use 'length' or 'frequency' to see rows without one"
                )
            if len(prepared.losses_D) != prepared.train.documents:
                raise DataError("data.order: a mixture has no order by loss; use 'length' or 'frequency'")
            return prepared.losses_D
        if self.by == "length":
            return np.diff(prepared.train.offsets_D1).astype(np.float64)
        return -mean_log_frequency(prepared)


def mean_log_frequency(prepared: PreparedData) -> np.ndarray:
    """Return the mean of log(count / N) over the tokens of each training document, (D,), float64, in nats.

    Its frame, [cls] and [sep], stands in every document and is left out.
    """
    store, vocabulary = prepared.train, prepared.vocabulary
    log_V = np.log(np.maximum(prepared.counts_V, 1) / store.tokens)
    framed_V = np.zeros(len(log_V))
    framed_V[[vocabulary.cls, vocabulary.sep]] = 1
    sums_D, frames_D = np.empty(store.documents), np.empty(store.documents)
    begin = 0
    while begin < store.documents:
        first = store.offsets_D1[begin]
        end = max(begin + 1, int(np.searchsorted(store.offsets_D1, first + _TOGETHER, side="right")) - 1)
        ids_N = np.asarray(store.ids_N[first : store.offsets_D1[end]])
        starts = store.offsets_D1[begin:end] - first
        frames_D[begin:end] = np.add.reduceat(framed_V[ids_N], starts)
        sums_D[begin:end] = np.add.reduceat(np.where(framed_V[ids_N] > 0, 0.0, log_V[ids_N]), starts)
        begin = end
    means_D: np.ndarray = sums_D / np.maximum(1, np.diff(store.offsets_D1) - frames_D)
    return means_D
