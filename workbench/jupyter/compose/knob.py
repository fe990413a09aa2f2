"""One row of a form: a field's control with its mark, its reset button and its error line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ipywidgets

from workbench.base.fields import same
from workbench.choices.choice import Problem
from workbench.jupyter.compose.inputs import Shape, make_input
from workbench.jupyter.compose.knob_help import path_class, value_text
from workbench.jupyter.compose.knob_notes import Doubt, Note, Reset
from workbench.jupyter.light_widgets import light

Changed = Callable[[], None]


class Brought(NamedTuple):
    """A knob that nobody turned: another choice brought its own value.

    Attributes:
        kind: of the choice. before: the baseline's value. now: its own.
    """

    kind: str
    path: str
    before: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.path} {value_text(self.before, 20)} → {value_text(self.now, 20)}"


def brought_lines(brought: Sequence[Brought]) -> list[str]:
    """List the knobs that each choice brought: ``"+1 with lans: optimizer.lr 0.004 → 0.00675"``."""
    by_kind: dict[str, list[str]] = {}
    for each in brought:
        by_kind.setdefault(each.kind, []).append(str(each))
    return [f"+{len(each)} with {kind}: {', '.join(each)}" for kind, each in by_kind.items()]


def rank_of(path: str, words: Sequence[str]) -> int:
    """Rank a name for a search: 0 the very name, 1 begins so, 2 holds it, 3 at best its help does."""
    asked, whole = " ".join(words), path.replace("_", " ")
    name = whole.rpartition(".")[2]
    if asked in (name, whole.replace(".", " ")):
        return 0
    return 1 if name.startswith(asked) else 2 if asked in name else 3


class Row:
    """The row of one field in the form: its controls, a mark and a reset button once it is changed, an error line.

    Args:
        tooltip: its help, through which a search looks.
        default: JSON value of the field, the baseline until another one is loaded.
        changed: called after the user changed anything in here.
    """

    def __init__(
        self, path: str, tooltip: str, default: Any, changed: Changed, parts: Sequence[ipywidgets.Widget]
    ) -> None:
        self.path, self._baseline, self._changed = path, default, changed
        self._search_text = f"{path} {tooltip}".replace("_", " ").lower()
        self.widget = light(ipywidgets.Box, parts)
        self.widget.add_class("lab-knob")
        self.widget.add_class(path_class(path))
        self._note, self.reset = Note(self.widget), Reset(self.widget, self.restore, 1)

    @property
    def brought(self) -> list[Brought]:
        """Knobs in here that differ from the baseline because another choice brought its own values."""
        return []

    def load(self, value: Any, baseline: Any) -> None:
        """Show ``value``; "reset" will return to ``baseline``."""
        raise NotImplementedError

    def restore(self) -> None:
        """Everything in here back to the baseline, as one change of the user's."""
        self.load(self._baseline, self._baseline)
        self._changed()

    def take(self, problems: list[Problem]) -> list[Problem]:
        """Show the problems that belong in here, return the others."""
        # Also what lies below: an entry of a list has a path of its own.
        mine = [p for p in problems if p.path == self.path or p.path.startswith(self.path + ".")]
        words = "; ".join(problem.message for problem in mine) + (self._way_out() if mine else "")
        self._note.say(words, doubt=all(isinstance(problem, Doubt) for problem in mine))
        return [problem for problem in problems if problem not in mine]

    def _way_out(self) -> str:
        """Return the end of the error line, where a problem does not say itself what helps."""
        return ""

    def rank(self, words: Sequence[str]) -> int:
        """Rank its name for a search (:func:`rank_of`)."""
        return rank_of(self.path, words)

    def _offer_reset(self, changed: bool) -> None:
        self.reset.offer(f"{self.path}: back to {value_text(self._baseline)}" if changed else "")


class Knob(Row):
    """One plain field with one control."""

    def __init__(
        self, path: str, shape: Shape, label: str, tooltip: str, default: Any, scale: str, changed: Changed
    ) -> None:
        self._number = shape.kind in ("int", "float")
        self.input = make_input(shape, label, tooltip, default, scale)
        self.input.changed = self._heard
        super().__init__(path, tooltip, default, changed, [self.input.widget])
        self.load(default, default)

    @property
    def value(self) -> Any:
        """The value as JSON has it; the text as typed where it cannot be read as one."""
        return self.input.get()

    @property
    def changes(self) -> int:
        """1 when the value differs from the baseline."""
        return int(not same(self.value, self._baseline))

    def load(self, value: Any, baseline: Any) -> None:
        """Show ``value``; "reset" will return to ``baseline``."""
        self._baseline = baseline
        # An equal value is not written again: the box keeps it as it was typed (30_000, not 30000).
        if not same(self.value, value):
            self.input.set(value)
        self._offer_reset(self.changes > 0)

    def _way_out(self) -> str:
        unread = self._number and isinstance(self.value, str) and self.changes
        return f"; the arrow beside it brings {value_text(self._baseline)} back" if unread else ""

    def show(self, words: Sequence[str]) -> int:
        """Return 1 where the knob's name or help holds all of these lower-case ``words``, else 0."""
        return int(all(word in self._search_text for word in words))

    def catch(self, late: Any) -> None:
        """Show what was typed into ``late``."""
        if isinstance(late, Knob):
            self.load(late.value, self._baseline)

    def _heard(self) -> None:
        self._offer_reset(self.changes > 0)
        self._changed()
