"""Base of the data choices: documents, a tokenizer, and the shape of a batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from workbench.base.text import many
from workbench.choices.choice import Choice, Problem, knob, one_of
from workbench.choices.data.batch_rules.as_scheduled import AsScheduled
from workbench.choices.data.batch_rules.batch_rule import BatchRule
from workbench.choices.data.order import RowOrder
from workbench.choices.data.orders.order import Order
from workbench.choices.data.orders.shuffled import Shuffled
from workbench.choices.data.steps.step import Step
from workbench.choices.data.tokenizers.tokenizer import TokenizerChoice
from workbench.choices.data.tokenizers.trained import TrainedTokenizer
from workbench.choices.data.tokens import PreparedData
from workbench.choices.progress import LOOK_AHEAD, Budget, Progress
from workbench.choices.schedules.schedule import Schedule, ScheduledInt, at, scheduled_knob

Say = Callable[[str], None]
"""Called with one line about what preparation is doing."""
Sourced = tuple[tuple[str, ...], str]
"""Names of what a document comes from, the widest first (package, module), and its text."""


class Data(Choice):
    """Base of the corpora: where documents come from, how they become tokens and rows, batches of shape (B, T)."""

    axis: ClassVar[str] = "data"
    provides: ClassVar[tuple[str, ...]] = ("documents", "sources")
    # True where the tokenizer turns tokens into text: a part of a mixture then has its own.
    decodes: ClassVar[bool] = False
    # False where sources are named for people alone: the split looks at documents.
    split_by_source: ClassVar[bool] = True
    tokenizer: one_of(TokenizerChoice) = knob(  # type: ignore[valid-type]
        help="how text becomes tokens", default_factory=TrainedTokenizer
    )
    sequence_length: ScheduledInt = scheduled_knob(128, "row length", unit="tokens", ge=8, le=65536, scale="log")
    length_step: int = knob(
        8, "a scheduled row length is rounded down to a multiple of this", unit="tokens", ge=8, le=4096, multiple_of=8
    )
    batch_size: ScheduledInt = scheduled_knob(32, "rows per optimizer step", unit="rows", ge=1, le=1 << 20, scale="log")
    batch_rule: one_of(BatchRule) = knob(  # type: ignore[valid-type]
        help="whether the batch size is as scheduled or follows the gradients", default_factory=AsScheduled
    )
    heldout_fraction: float = knob(0.05, "share of documents held out of training", gt=0, lt=1)
    steps: tuple[one_of(Step), ...] = knob(  # type: ignore[valid-type]
        (),
        "preparation steps: documents are removed or changed by them, in this order, before the split",
        max_length=32,
    )
    tokens_limit: int = knob(
        0, "train on a fixed sample of documents of at most so many tokens; 0: on all of the text", unit="tokens", ge=0,
    )  # fmt: skip
    order: one_of(Order) = knob(  # type: ignore[valid-type]
        help="in which order training reads the text", default_factory=Shuffled
    )

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Yield the problems of the batch rule and of the order."""
        yield from self.batch_rule.problems(recipe)
        yield from self.order.problems(recipe)

    def problems_together(self, recipe: Any, processes: int) -> Iterator[Problem]:
        """Yield an order and a batch rule for one process, and micro-batches with fewer rows than processes."""
        readers = recipe.execution.readers(processes)
        yield from self.order.problems_together(recipe, readers)
        if any(map(self.batch_rule.compares, range(LOOK_AHEAD))):
            kind = self.batch_rule.kind
            why = f"'{kind}' compares gradients of one process's rows; use 'as_scheduled', or train in one process"
            yield Problem("data.batch_rule", why)
        micro = recipe.execution.micro_batch_size
        rows = min(self.fewest_rows, micro if isinstance(micro, int) else self.fewest_rows)
        if rows < readers:
            why = f"{many(rows, 'row')} at a time cannot be shared by {readers} processes; use more rows"
            yield Problem("data.batch_size", why)

    def problems_here(self) -> Iterator[Problem]:
        """Yield, at once, what of text and tokenizer is not here and cannot be fetched; a form asks at every key."""
        for path, message in self.tokenizer.problems_here():
            yield Problem(f"data.tokenizer.{path}", message)
        for step in self.steps:
            for path, message in step.problems_here():
                yield Problem("data.steps", f"{step.kind}.{path}: {message}")

    def notices(self) -> Iterator[Problem]:
        """Yield what is said before training: text that is not read, special tokens that are added; no errors."""
        for path, message in self.tokenizer.notices():
            yield Problem(f"data.tokenizer.{path}", message)

    @property
    def longest(self) -> int:
        """Longest row of the run in tokens, T: what models, heads and held-out rows are built for.

        Held-out rows have this length however long the rows in training are at the time, so that losses compare
        along a run and between recipes with equal longest rows.
        """
        return self._length(_extremes(self.sequence_length)[1])

    @property
    def most_rows(self) -> int:
        """Largest batch that ``batch_size`` reaches, in rows; a batch rule may go beyond it."""
        return round(_extremes(self.batch_size)[1])

    @property
    def fewest_rows(self) -> int:
        """Smallest batch that ``batch_size`` reaches, in rows."""
        return round(_extremes(self.batch_size)[0])

    def most_tokens(self, budget: Budget) -> float:
        """Return the most tokens that a budget lets a run read; infinite where it counts seconds, or batches adapt."""
        if budget.unit == "tokens":
            return budget.amount
        steady = budget.unit == "steps" and self.batch_rule.follows_schedule
        return budget.amount * self.most_rows * self.longest if steady else math.inf

    def length_at(self, progress: Progress) -> int:
        """Return row length T at ``progress``, in tokens: as written,
        or a schedule's value rounded down to ``length_step``.

        Example:
            >>> from workbench.choices.data import Embedded
            >>> from workbench.choices.progress import Budget
            >>> data = Embedded(sequence_length={"kind": "linear", "start": 16, "end": 64})
            >>> data.length_at(Progress(step=50, tokens=0, seconds=0.0, budget=Budget(amount=80))), data.longest
            (40, 64)
        """
        return self._length(at(self.sequence_length, progress))

    def rows_at(self, progress: Progress) -> int:
        """Return rows that ``batch_size`` asks for at ``progress``, a whole number of them, at least 1.

        Training rounds them further, to whole micro-batches (see ``training.batch_size``).
        """
        return max(1, round(at(self.batch_size, progress)))

    def _length(self, value: float) -> int:
        if not isinstance(self.sequence_length, Schedule):
            return int(value)
        # The epsilon: a shape that ends at 512 may come out as 511.9999999.
        whole = int(value + 1e-6)
        # A row that is shorter than the step is rounded to a multiple of 8, not to 0.
        return whole // self.length_step * self.length_step or whole // 8 * 8

    def documents(self) -> Iterator[str]:
        """Yield every document of the corpus in a fixed order, cleaned.

        Raises:
            DataError: missing, empty, unreadable or not UTF-8.
        """
        raise NotImplementedError

    def sourced_documents(self) -> Iterator[Sourced]:
        """Yield the documents in the same order, each with what it comes from.

        The split holds out whole sources, unless ``split_by_source`` is false. Without names, as here, every document
        is a source of its own.
        """
        return (((), text) for text in self.documents())

    def corpora(self) -> dict[str, Data]:
        """Return the corpora that are split each by itself, by name: of a mixture its parts, else this one alone."""
        return {"": self}

    def collect(self, say: Say) -> None:
        """Harvest or fetch what :meth:`documents` will read, where that takes long; nothing to do for local files."""

    def sources(self) -> dict[str, Any]:
        """Return what the documents were made from (paths, sizes, versions, hashes): the key of the cache."""
        raise NotImplementedError

    def row_order(self, prepared: PreparedData, seed: int) -> RowOrder:
        """Return the training rows of :attr:`longest` tokens in the order in which a run of ``seed`` reads them.

        Raises:
            DataError: the training split holds fewer tokens than one row.
        """
        return RowOrder(prepared.train, self.longest, seed, self.order.arrange(prepared))

    @property
    def limited(self) -> bool:
        """Return whether the text ends: :meth:`check_budget` then looks at how many tokens a run will read."""
        return False

    def check_budget(self, prepared: PreparedData, recipe: Any) -> None:
        """Refuse prepared text that ends before the budget of a recipe, where its tokens are known.

        Raises:
            DataError: says after how many tokens it ends.
        """

    def heldout_documents(self) -> Iterator[str] | None:
        """Yield documents of a held-out set of its own, or None to split ``documents`` by a fixed rule."""
        return None


def _extremes(value: int | Schedule) -> tuple[float, float]:
    return value.extremes() if isinstance(value, Schedule) else (value, value)
