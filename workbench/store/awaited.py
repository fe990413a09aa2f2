"""Runs and experiments: waited for, or awaited."""

from __future__ import annotations

import inspect
import math
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")
# Before Python 3.12 a comprehension is a frame of its own between the cell and the call.
_COMPREHENSIONS = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>", "<lambda>")


class Awaited(ABC, Generic[T]):
    """A run or an experiment, whose end whoever holds it may wait for."""

    @abstractmethod
    def ended(self, deadline: float = math.inf) -> bool:
        """Return True once it has ended.

        Args:
            deadline: of ``time.monotonic``.

        Raises:
            TimeoutError: the deadline has passed.
        """

    @abstractmethod
    def outcome(self) -> T:
        """Return the result of one that has ended.

        Raises:
            RunFailed: it ended without one.
        """

    def wait(self, timeout: float | None = None, poll: float = 0.2) -> T | Coroutine[Any, Any, T]:
        """Wait for the end; returns the result. ``await run.wait()`` lets other callbacks run meanwhile.

        Called from a coroutine, or from a notebook cell that uses ``await``, this returns an awaitable
        (:meth:`wait_async`); called from anywhere else it blocks (:meth:`wait_blocking`). Being interrupted touches
        nothing. An experiment's driver that was killed is started again.

        Args:
            timeout: at most this many seconds; None waits for ever.
            poll: seconds between two looks.

        Raises:
            RunFailed: it failed, is lost or was cancelled; the message says why and how to go on.
            TimeoutError: it has not ended in time; it goes on.
        """
        if called_from_coroutine():
            return self.wait_async(timeout, poll)
        return self.wait_blocking(timeout, poll)

    def wait_blocking(self, timeout: float | None = None, poll: float = 0.2) -> T:
        """Block until the end; see :meth:`wait`."""
        deadline = _deadline(timeout)
        while not self.ended(deadline):
            time.sleep(poll)
        return self.outcome()

    async def wait_async(self, timeout: float | None = None, poll: float = 0.2) -> T:
        """:meth:`wait`, always to be awaited."""
        # Here, since it would double the time that `workbench runs` takes to answer.
        import asyncio

        deadline = _deadline(timeout)
        while not self.ended(deadline):
            await asyncio.sleep(poll)
        return self.outcome()


def _deadline(timeout: float | None) -> float:
    return math.inf if timeout is None else time.monotonic() + timeout


def called_from_coroutine() -> bool:
    """Return True if the caller of our caller is a coroutine (a notebook cell with ``await`` is one)."""
    frame = sys._getframe(2)
    while frame.f_code.co_name in _COMPREHENSIONS and frame.f_back is not None:
        frame = frame.f_back
    # Whether a loop is running would not tell: in a notebook one always is, also around a cell without `await`.
    return bool(frame.f_code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR))
