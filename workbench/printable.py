"""Text of anybody made fit for a terminal, a table or a picture. Standard library only."""

from __future__ import annotations

LONGEST_NAME = 48


def plain(text: object, longest: int = LONGEST_NAME) -> str:
    """One printable line of anything: control characters and broken Unicode become spaces, long text is cut.

    Example:
        >>> plain("two\\nlines")
        'two lines'
    """
    # Not printable are line breaks, terminal codes, and lone surrogates, which UTF-8 cannot write at all.
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def plain_lines(text: object) -> str:
    """Several printable lines: as :func:`plain`, but line breaks stay and nothing is cut."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in str(text))
