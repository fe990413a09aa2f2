"""The latest of many questions, answered in a thread: nobody waits, and what was overtaken is never begun."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Q = TypeVar("Q")


class Latest(Generic[Q]):
    """Answers one question at a time, next always the newest; those in between are dropped.

    A plain daemon thread lives only while there is something to answer: a widget that nobody has any more leaves none.

    Args:
        answer: called in the thread; must not raise (where would an error be seen?).

    Example:
        >>> said = []
        >>> latest = Latest(said.append, "example")
        >>> latest.ask("a")
        >>> latest.wait(1.0), said
        (True, ['a'])
    """

    def __init__(self, answer: Callable[[Q], None], name: str) -> None:
        self._answer, self._name = answer, name
        self._next: list[Q] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def ask(self, question: Q) -> None:
        """Answer this as soon as the present one is done; returns at once."""
        with self._lock:
            if self._closed:
                return
            self._next = [question]
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is left to answer; False when the time is up first."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(seconds)
        return thread is None or not thread.is_alive()

    def close(self) -> None:
        """Begin no further answer."""
        with self._lock:
            self._closed, self._next = True, []

    def _work(self) -> None:
        while True:
            # Asking and ending under one lock: a question asked in this very moment must find a thread.
            with self._lock:
                if not self._next:
                    self._thread = None
                    return
                question = self._next.pop()
            self._answer(question)
