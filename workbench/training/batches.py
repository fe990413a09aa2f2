"""Batches of coming steps, prepared in a thread while the present one computes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np

from workbench.base.errors import DataError
from workbench.choices.architectures.flops import attention_span
from workbench.choices.data.order import RowOrder
from workbench.choices.data.tokens import Batch
from workbench.choices.execution.ranks import Ranks

# Shape legend: B rows of a micro-batch, T positions of a row.


class StepShape(NamedTuple):
    """The size of a step's batch, and its cut.

    Attributes:
        length: T, tokens per row.
        part_rows: B, rows per micro-batch; divides ``rows``.
    """

    rows: int
    length: int
    part_rows: int

    @property
    def tokens(self) -> int:
        """Tokens of the whole step; rows are full, so all of them are real."""
        return self.rows * self.length


class StepBatch(NamedTuple):
    """Everything one optimizer step reads.

    Attributes:
        parts: its micro-batches, on the CPU (pinned where the device is a GPU): what the run's model reads, each with
            a method ``to(device)``; a :class:`Batch` where the data are the recipe's.
        tokens: real ones in all of them.
        span: s_eff, tokens: what attention has to look at per token (see ``flops.attention_span``).
        read: of a mixture, tokens and epochs of each part after this step, by the name in telemetry.
    """

    parts: list[Any]
    tokens: int
    span: float = 0.0
    read: Mapping[str, float] = MappingProxyType({})


class Steps(Protocol):
    """Hands out the batch of step after step; :class:`Prefetch` is one."""

    def next(self, tokens: int, shape: StepShape) -> StepBatch:
        """Return the batch of the step that comes after so many tokens, of that shape where the data allow it."""

    def state(self) -> dict[str, Any]:
        """JSON-able: what a checkpoint must keep, so that the next batch is the same after a resume."""

    def close(self) -> None:
        """Let go of threads and processes."""


def step_batch(
    order: RowOrder,
    first: int,
    shape: StepShape,
    ranks: Ranks = Ranks(),  # noqa: B008
    workers: int = 1,
) -> StepBatch:
    """Return the batch of one step, cut into micro-batches: samples [first, first + rows).

    Args:
        order: rows of ``shape.length`` tokens by sample index.
        ranks: each takes its share of every micro-batch's rows.
        workers: of each rank, which go through their shares of all micro-batches one after the other.

    Raises:
        DataError: a micro-batch has fewer rows than there are ranks or workers.
    """
    shares = ranks.size * workers
    if shape.part_rows < shares:
        raise DataError(
            f"micro-batches of {shape.part_rows} rows cannot be shared by {shares} processes; raise "
            "data.batch_size or execution.micro_batch_size, or take fewer processes or workers"
        )
    assert order.sequence_length == shape.length, (order.sequence_length, shape)
    assert shape.rows % shape.part_rows == 0, shape
    starts = range(first, first + shape.rows, shape.part_rows)
    own = range(ranks.rank * workers, (ranks.rank + 1) * workers)
    parts = [order.batch(np.arange(start, start + shape.part_rows)[w::shares]) for w in own for start in starts]
    # Equal numbers of tokens per part, so the mean over parts is the mean over tokens.
    span = sum(attention_span(part.documents_BT) for part in parts) / len(parts)
    return StepBatch(parts, shape.tokens, span, order.read(first + shape.rows))


class Prefetch:
    """Hands out step after step; the next ones are prepared meanwhile, as if their shape would stay.

    The first row of a step follows from the tokens before it (``RowOrder.first_sample``), so a resumed run, or one
    whose batches change their shape, needs no other state. A change costs what was prepared in vain: a few batches.

    Args:
        order: rows of any length of the same text.
        pin: lock the pages, so that copies to a GPU need not wait.
        ranks, workers: which share of the rows to hand out.
    """

    def __init__(
        self,
        order: RowOrder,
        *,
        pin: bool = False,
        ahead: int = 2,
        ranks: Ranks = Ranks(),  # noqa: B008
        workers: int = 1,
    ) -> None:
        self._order, self._pin, self._ahead, self._shared = order, pin, ahead, (ranks, workers)
        self._due: tuple[int, StepShape] | None = None
        self._maker: _Maker | None = None

    def state(self) -> dict[str, Any]:
        """Nothing: the tokens read so far say it all."""
        return {}

    def next(self, tokens: int, shape: StepShape) -> StepBatch:
        """Return the batch of the step that comes after so many tokens.

        Args:
            tokens: read by the steps before.

        Raises:
            DataError: the text does not fill one row of that length.
            Exception: whatever else went wrong while it was prepared.
        """
        self._order = self._order.of_length(shape.length)
        due = self._order.first_sample(tokens), shape
        if self._maker is None or due != self._due:
            # First: two threads must not share the order's plans.
            self.close()
            self._maker = _Maker(self._order, *due, self._pin, self._ahead, self._shared)
        self._due = due[0] + shape.rows, shape
        item = self._maker.ready.get()
        if isinstance(item, BaseException):
            raise item
        return item

    def close(self) -> None:
        """Let the thread end; :meth:`next` begins another."""
        if self._maker is not None:
            self._maker.close()
            self._maker = None


class _Maker:
    """A thread that prepares batches of one shape, step after step, from one sample on."""

    def __init__(
        self, order: RowOrder, first: int, shape: StepShape, pin: bool, ahead: int, shared: tuple[Ranks, int]
    ) -> None:
        self._order, self._shape, self._pin, self._shared = order, shape, pin, shared
        self.ready: queue.Queue[StepBatch | BaseException] = queue.Queue(ahead)
        self._closed = threading.Event()
        # A thread, not a process: nothing has to be copied between two memories. A daemon: a trainer that ends by an
        # error must not hang on it.
        self.thread = threading.Thread(target=self._prepare, args=(first,), name="batches", daemon=True)
        self.thread.start()

    def close(self) -> None:
        """Let the thread end; waits for the batch that it has in hand."""
        self._closed.set()
        # Room for that batch: the thread would wait for some in vain.
        while not self.ready.empty():
            self.ready.get_nowait()
        self.thread.join(timeout=10)

    def _prepare(self, first: int) -> None:
        while not self._closed.is_set():
            item: StepBatch | BaseException
            try:
                item = step_batch(self._order, first, self._shape, *self._shared)
                if self._pin:
                    item = item._replace(parts=[Batch(*(x.pin_memory() for x in part)) for part in item.parts])
            # Handed over like a batch, so that it is raised where somebody is listening.
            except Exception as error:
                item = error
            while not self._closed.is_set():
                try:
                    # With a timeout: close() must be noticed while nobody takes anything.
                    self.ready.put(item, timeout=0.1)
                    break
                except queue.Full:
                    continue
            first += self._shape.rows
