"""Undo and redo: states one after the other, a bounded number of them, quick changes of one thing taken as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

S = TypeVar("S")

LIMIT = 200
"""States kept: some kilobytes each, and more than anybody walks back."""
MERGE_SECONDS = 1.0
"""Changes of one knob that follow each other faster are one: a slider moved with the arrow keys."""


class History(Generic[S]):
    """A walk through states that only ever grows at its end.

    Args:
        limit: states kept; the oldest are forgotten.
        merge_seconds: how soon after a change another one under the same key counts as part of it.

    Example:
        >>> history = History("a")
        >>> history.record("b")
        >>> history.undo(), history.redo()
        ('a', 'b')
    """

    def __init__(self, start: S, limit: int = LIMIT, merge_seconds: float = MERGE_SECONDS) -> None:
        if limit < 1:
            raise ValueError(f"limit {limit}: a history holds at least its present state")
        self._states, self._at = [start], 0
        self._limit, self._merge_seconds = limit, merge_seconds
        self._key, self._when = "", 0.0

    @property
    def present(self) -> S:
        """The state that was recorded, undone to or redone to last."""
        return self._states[self._at]

    def record(self, state: S, key: str = "", now: float = 0.0) -> None:
        """Remember a change; what was undone before it is forgotten.

        Args:
            state: after the change; nothing happens where it equals the present one.
            key: what was changed; empty where nothing is to be merged with it. One that ends with a dot stands for all
                keys that begin with it.
            now: seconds of any clock that does not go back.
        """
        if state == self.present:
            return
        follows = _alike(key, self._key) and now - self._when < self._merge_seconds
        del self._states[self._at + 1 :]
        if follows and self._at > 0:
            self._states.pop()
        # There and back within a moment: nothing has happened.
        if self._states[-1] != state:
            self._states.append(state)
            # Of two that are merged, the one that stands for more.
            self._key, self._when = min(key, self._key, key=len) if follows else key, now
        else:
            self._key = ""
        del self._states[: -self._limit]
        self._at = len(self._states) - 1

    def undo(self) -> S:
        """Go back by one; the present state where nothing lies before it."""
        return self._move(-1)

    def redo(self) -> S:
        """Go forward by one; the present state where nothing was undone."""
        return self._move(1)

    def undone_by(self, describe: Callable[[S, S], str]) -> str:
        """Return what :meth:`undo` would take back, as ``describe(before, after)``; empty where that is nothing."""
        return describe(self._states[self._at - 1], self.present) if self._at else ""

    def redone_by(self, describe: Callable[[S, S], str]) -> str:
        """Return what :meth:`redo` would do again, as ``describe(before, after)``; empty where that is nothing."""
        return describe(self.present, self._states[self._at + 1]) if self._at + 1 < len(self._states) else ""

    def _move(self, by: int) -> S:
        self._at = min(len(self._states) - 1, max(0, self._at + by))
        # The next change is one of its own, however soon it comes.
        self._key = ""
        return self.present


def _alike(key: str, other: str) -> bool:
    """Return whether two changes are of one thing: the same knob, or a curve and a knob of its own."""
    short, long = sorted((key, other), key=len)
    return bool(short) and (short == long or (short.endswith(".") and long.startswith(short)))
