"""Text of anybody, and numbers, made fit for a terminal, a table or a picture. Standard library only."""

from __future__ import annotations

import io
import math
import sys
import time
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

LONGEST_NAME = 48
UNKNOWN = "-"
MOST_DECIMALS = 6


def escape_unprintable() -> None:
    """Have stdout and stderr write what their encoding cannot say as escapes: what is only printed never fails."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def plain(text: object, longest: int = LONGEST_NAME) -> str:
    """Return one printable line of anything: control characters and broken Unicode become spaces, long text is cut.

    Example:
        >>> plain("two\\nlines")
        'two lines'
    """
    # Not printable are line breaks, terminal codes, and lone surrogates, which UTF-8 cannot write at all.
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def plain_lines(text: object) -> str:
    """Return several printable lines: as :func:`plain`, but line breaks stay and nothing is cut."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in str(text))


def utc(moment: Any) -> str:
    """Return date and time of seconds since 1970, in UTC; empty for what is none."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(moment)) if isinstance(moment, (int, float)) else ""
    except (OverflowError, ValueError, OSError):  # no moment that a calendar knows
        return ""


def sentence(text: str) -> str:
    """Return a text as a sentence of its own.

    Example:
        >>> sentence("it has ended")
        'It has ended.'
    """
    return f"{text[:1].upper()}{text[1:]}."


def decimal(value: float | None, digits: int) -> str:
    """Return fixed decimals, or a dash for what is not known."""
    return UNKNOWN if value is None else f"{value:.{digits}f}"


def distinct(values: Sequence[float], digits: int = 1) -> list[str]:
    """Return fixed decimals, more of them where different numbers would else read the same.

    Args:
        digits: at least. Numbers that agree in :data:`MOST_DECIMALS` decimals read the same.

    Example:
        >>> distinct([0.17, 0.21, 3.0])
        ['0.17', '0.21', '3.00']
    """
    closest = len({f"{value:.{MOST_DECIMALS}f}" for value in values})
    while digits < MOST_DECIMALS and len({f"{value:.{digits}f}" for value in values}) < closest:
        digits += 1
    return [f"{value:.{digits}f}" for value in values]


def share_done(progress: float) -> str:
    """Return a share of a budget (0 to 1) in whole percent, rounded down: 100% is the end;
    a first percent in hundredths.

    The page's ``format.js`` has the same rule.

    Example:
        >>> share_done(0.0012), share_done(0.168), share_done(0.9999), share_done(1.0)
        ('0.12%', '16%', '99%', '100%')
    """
    if not math.isfinite(progress):
        return UNKNOWN
    parts = 10_000 if 0 < progress < 0.01 else 100
    # 0.29 is a little less than 29 hundredths.
    done = min(math.floor(parts * progress + 1e-9), parts if progress >= 1 else parts - 1)
    return f"{done}%" if parts == 100 else f"{done / 100:.2f}%"


def many(number: int, noun: str) -> str:
    """Return a number of things with its noun, whose plural is regular.

    Example:
        >>> many(1, "run"), many(1200, "run")
        ('1 run', '1,200 runs')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def count(value: float | None) -> str:
    """Return a number of things, short: 812, 12,345, 3.42M, 1.10B.

    Example:
        >>> count(12345), count(3_420_000), count(None)
        ('12,345', '3.42M', '-')
    """
    if value is None:
        return UNKNOWN
    if not math.isfinite(value):
        return str(value)
    for size, letter in ((1e9, "B"), (1e6, "M")):
        if abs(value) >= size:
            return f"{value / size:.2f}{letter}"
    return f"{value:,.0f}"


def passes_words(passes: float, tokens: int) -> str:
    """Return how often a text of so many tokens is read.

    Example:
        >>> passes_words(20.0, 500_000), passes_words(0.3125, 2_000_000), passes_words(1.0, 900)
        ('20 passes over 500,000 tokens', '0.313 passes over 2.00M tokens', '1 pass over 900 tokens')
    """
    shown = f"{passes:.3g}" if passes < 100 else f"{passes:,.0f}"
    return f"{shown} pass{'es' * (shown != '1')} over {count(tokens)} tokens"


def duration_words(seconds: float) -> str:
    """Return seconds in at most two units.

    Example:
        >>> [duration_words(seconds) for seconds in (8.4, 200, 7500, 190_000)]
        ['8 s', '3 min 20 s', '2 h 05 min', '2 d 4 h']
    """
    if seconds < 10:
        return f"{seconds:.2g} s" if seconds < 1 else f"{round(seconds)} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        # A forecast of half an hour does not know its seconds.
        return f"{minutes} min {rest} s" if rest and minutes < 10 else f"{round(whole / 60)} min"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as columns of text.

    Example:
        >>> aligned([("a", "b"), ("long", "c")])
        'a     b\\nlong  c'
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def facts_html(facts: Mapping[str, str]) -> str:
    """Return facts as a table of a notebook's cell, everything escaped; those that are empty are left out."""
    rows = (
        f"<tr><th style='text-align:left'>{escape(label)}</th>"
        f"<td style='text-align:left;white-space:pre-wrap'>{escape(plain_lines(text))}</td></tr>"
        for label, text in facts.items()
        if text
    )
    return f"<table>{''.join(rows)}</table>"
