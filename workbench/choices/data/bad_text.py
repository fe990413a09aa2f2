"""Text that is no Unicode: refused, left out or replaced, and counted."""

from __future__ import annotations

import re
from typing import Literal

from workbench.base.errors import DataError
from workbench.base.text import many

BadTextRule = Literal["refuse", "skip", "replace"]
REPLACEMENT = "\ufffd"
_NO_TEXT = re.compile("[\0\x80-\x84\x86-\x9f]")
"""Characters that no text has: zero, of UTF-16, and controls that a wrong conversion leaves. Not U+0085, a line end."""
NAMED = 3


class BadText:
    """Decides about text that is no Unicode, and counts it.

    Args:
        rule: ``refuse`` raises, ``skip`` leaves out the line or record, ``replace`` puts U+FFFD in its place.
        knob: that sets the rule, for messages; empty where none does.

    Example:
        >>> bad = BadText("replace")
        >>> bad.line(b"caf\\xe9\\n", "'a.txt' line 1")
        'caf\ufffd\\n'
        >>> bad.told()
        "data.bad_text=replace: 1 place without Unicode text repaired with U+FFFD: 'a.txt' line 1"
    """

    def __init__(self, rule: BadTextRule, knob: str = "data.bad_text") -> None:
        self.rule = rule
        self.way_out = f"; or set {knob} to skip or replace" if knob else ""
        self.count = 0
        self._named: list[str] = []

    @property
    def refused(self) -> bool:
        """Return whether the first such text is an error."""
        return self.rule == "refuse"

    def line(self, line: bytes, where: str) -> str:
        """Return the text of a line of a file; what is left out becomes an empty line."""
        return self._settled(line, where) or "\n"

    def decoded(self, value: bytes, where: str) -> str:
        """Return the text of a value; empty where it is left out.

        Raises:
            DataError: it is not UTF-8, and that is refused.
        """
        try:
            return value.decode() if self.refused else self._settled(value, where)
        except UnicodeDecodeError as error:
            raise DataError(f"{where} is not UTF-8: {error}; repair or remove it{self.way_out}") from None

    def whole(self, text: str, where: str) -> str:
        """Return a text without halves of characters; empty where it is left out.

        Raises:
            DataError: it has one, which no tokenizer takes, and that is refused.
        """
        try:
            text.encode()
        # JSON can write half of a surrogate pair.
        except UnicodeEncodeError as error:
            if self.refused:
                raise DataError(
                    f"{where} is not Unicode text: a lone surrogate {text[error.start]!r} at character "
                    f"{error.start:,}; repair or remove that record{self.way_out}"
                ) from None
            self._note(where)
            return "" if self.rule == "skip" else re.sub("[\ud800-\udfff]", REPLACEMENT, text)
        return text

    def told(self) -> str:
        """Return what was done to how much, in one line; empty where all was text."""
        if not self.count:
            return ""
        done = "left out" if self.rule == "skip" else "repaired with U+FFFD"
        more = ", ..." if self.count > NAMED else ""
        return (f"data.bad_text={self.rule}: {many(self.count, 'place')} without Unicode text {done}: "
                f"{', '.join(self._named)}{more}")  # fmt: skip

    def _settled(self, content: bytes, where: str) -> str:
        text, broken = content.decode("utf-8", "replace"), False
        if not text.isascii() or "\0" in text:
            # A replacement mark may stand in the file itself.
            broken = REPLACEMENT in text and text.encode() != content
            if broken or _NO_TEXT.search(text):
                self._note(where)
                return "" if self.rule == "skip" else _NO_TEXT.sub(REPLACEMENT, text)
        return text

    def _note(self, where: str) -> None:
        self.count += 1
        if len(self._named) < NAMED:
            self._named.append(where)


REFUSED = BadText("refuse", knob="")
