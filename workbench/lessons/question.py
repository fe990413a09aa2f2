"""A question of a lesson: which answers are legal, and how it and its answer read as text and as HTML."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from workbench.base.errors import LessonError, unknown
from workbench.lessons.record import Prediction, Value

_BOX = "border-left: 4px solid #0072b2; padding: 2px 12px; margin: 4px 0"
_NOTE = "opacity: .75; font-size: 90%"


@dataclass(frozen=True)
class Question:
    """A question of a lesson.

    Attributes:
        where: lesson and key, for errors.
        text: as the learner reads it.
        options: one of them is the answer; without any it is a number.
        unit, low, high: of the number.
    """

    where: str
    text: str
    options: tuple[str, ...] = ()
    unit: str = ""
    low: float = -math.inf
    high: float = math.inf

    @classmethod
    def of(
        cls,
        where: str,
        text: str,
        options: Sequence[str] | None,
        unit: str = "",
        low: float | None = None,
        high: float | None = None,
    ) -> Question:
        """Return a question, after a look at how it was asked.

        Raises:
            LessonError: it has neither two options nor a range, or both.
        """
        given = tuple(map(str, options or ()))
        asks_number = low is not None and high is not None
        if asks_number == bool(given) or (given and len(set(given)) < max(2, len(given))):
            raise LessonError(
                f"{where}: ask for one of two or more different options, or for a number from low to high"
            )
        if low is None or high is None:
            return cls(where, text, given)
        return cls(where, text, (), unit, float(low), float(high))

    @property
    def legal(self) -> str:
        """Return the legal answers in words."""
        if self.options:
            return ", ".join(self.options)
        return f"a number from {self.low:g} to {self.high:g}{self.unit and ' '}{self.unit}"

    def answer(self, given: Any) -> Value:
        """Return a legal answer.

        Raises:
            LessonError: ``given`` is of the wrong kind or out of range.
        """
        if self.options:
            if given not in self.options:
                raise LessonError(unknown(self.where, given, self.options, noun="answer"))
            return str(given)
        number = self.number(given)
        if not self.low <= number <= self.high:
            raise LessonError(f"{self.where}: {number:g} is out of range; give {self.legal}")
        return number

    def number(self, given: Any) -> float:
        """Return a finite number in the question's unit, in its range or not.

        Raises:
            LessonError: it is none.
        """
        try:
            # A decimal comma or the unit is what many people type; whoever writes True means no number.
            typed = str(given).strip().removesuffix(self.unit).strip().replace(",", ".")
            value = math.nan if isinstance(given, bool) else float(typed)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise LessonError(f"{self.where}: '{given}' is no number; give {self.legal}")
        return value


def value_text(value: Value | None, unit: str = "") -> str:
    """Return a prediction or an outcome as people read it; a dash for none.

    Example:
        >>> value_text(4.25, "nats"), value_text("B"), value_text(None)
        ('4.25 nats', 'B', '-')
    """
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:.4g}{unit and ' '}{unit}"


def verdict(found: Prediction) -> str:
    """Return in words how a prediction met its outcome; empty before there is one.

    Example:
        >>> verdict(Prediction(question="?", unit="nats", value=4.0, made_at=0, outcome=4.5, error=-0.5))
        'off by 0.5 nats: too low'
    """
    if found.outcome is None:
        return ""
    if found.error is None:
        return "right" if found.right else "not this time"
    if found.error == 0:
        return "exact"
    unit = "percentage points" if found.unit == "%" else found.unit
    return f"off by {value_text(abs(found.error), unit)}: too {'low' if found.error < 0 else 'high'}"


def moment(seconds: float) -> str:
    """Return a moment in the reader's time of day; with the date if it is another day."""
    then = time.localtime(seconds)
    today = time.localtime()[:3] == then[:3]
    return time.strftime("%H:%M" if today else "%Y-%m-%d %H:%M", then)


@dataclass(frozen=True)
class Still:
    """A part of a lesson that needs no kernel any more.

    Attributes:
        title: the question. lines: below it. note: in small letters, who and where.
    """

    title: str
    lines: tuple[str, ...]
    note: str = ""

    @property
    def text(self) -> str:
        """Return it for a terminal."""
        return "\n".join(
            [self.title, *(f"  {line}" for line in self.lines), *([f"  ({self.note})"] if self.note else [])]
        )

    @property
    def html(self) -> str:
        """Return it without scripts and style sheets: it is read on GitHub, too."""
        lines = "".join(f"<div>{escape(line)}</div>" for line in self.lines)
        note = f"<div style='{_NOTE}'>{escape(self.note)}</div>" if self.note else ""
        return f"<div style='{_BOX}'><strong>{escape(self.title)}</strong>{lines}{note}</div>"

    @property
    def bundle(self) -> dict[str, Any]:
        """Return it as an output of a cell."""
        return {"text/html": self.html, "text/plain": self.text}
