"""Batches of coming steps, prepared in a thread while the present one computes."""

from __future__ import annotations

import queue
import threading
from typing import NamedTuple

import numpy as np

from workbench.choices.architectures.flops import attention_span
from workbench.choices.data.order import RowOrder
from workbench.choices.data.tokens import Batch

# Shape legend: B rows of a micro-batch, T positions of a row.


class StepBatch(NamedTuple):
    """Everything one optimizer step reads.

    Attributes:
        parts: its micro-batches, on the CPU (pinned where the device is a GPU).
        tokens: in all of them; rows are full, so all are real.
        span: s_eff, tokens: what attention has to look at per token (see ``flops.attention_span``).
    """

    parts: list[Batch]
    tokens: int
    span: float


def step_batch(order: RowOrder, step: int, batch_size: int, rows: int) -> StepBatch:
    """The batch of one step, cut into micro-batches: samples [step * batch_size, (step + 1) * batch_size).

    Args:
        order: rows by sample index.
        step: counted from 0.
        batch_size: rows per step.
        rows: B, rows per micro-batch; divides ``batch_size``.
    """
    first = step * batch_size
    parts = [order.batch(np.arange(start, start + rows)) for start in range(first, first + batch_size, rows)]
    tokens = sum(part.tokens_BT.numel() for part in parts)
    # Equal numbers of tokens per part, so the mean over parts is the mean over tokens.
    return StepBatch(parts, tokens, sum(attention_span(part.documents_BT) for part in parts) / len(parts))


class Prefetch:
    """Hands out step after step; the next ones are prepared meanwhile.

    Args:
        order, batch_size, rows: as for :func:`step_batch`.
        first_step: where to begin (a resumed run begins at its step: the order needs no other state).
        pin: lock the pages, so that copies to a GPU need not wait.
        ahead: steps prepared in advance.
    """

    def __init__(
        self, order: RowOrder, batch_size: int, rows: int, first_step: int, *, pin: bool = False, ahead: int = 2
    ) -> None:
        self._order, self._batch_size, self._rows, self._pin = order, batch_size, rows, pin
        self._ready: queue.Queue[StepBatch | BaseException] = queue.Queue(ahead)
        self._closed = threading.Event()
        # A thread, not a process: nothing has to be copied between two memories. A daemon: a trainer that ends by an
        # error must not hang on it.
        self._thread = threading.Thread(target=self._prepare, args=(first_step,), name="batches", daemon=True)
        self._thread.start()

    def next(self) -> StepBatch:
        """The next step's batch.

        Raises:
            Exception: whatever went wrong while it was prepared.
        """
        item = self._ready.get()
        if isinstance(item, BaseException):
            raise item
        return item

    def close(self) -> None:
        """Let the thread end."""
        self._closed.set()
        self._thread.join(timeout=10)

    def _prepare(self, step: int) -> None:
        while not self._closed.is_set():
            item: StepBatch | BaseException
            try:
                item = step_batch(self._order, step, self._batch_size, self._rows)
                if self._pin:
                    item = item._replace(parts=[Batch(*(x.pin_memory() for x in part)) for part in item.parts])
            # Handed over like a batch, so that it is raised where somebody is listening.
            except Exception as error:
                item = error
            while not self._closed.is_set():
                try:
                    # With a timeout: close() must be noticed while nobody takes anything.
                    self._ready.put(item, timeout=0.1)
                    break
                except queue.Full:
                    continue
            step += 1
