"""Colours, dashes and words that every picture shares, and names made safe to draw.

Colours are Okabe and Ito's (2008), distinguishable under all common forms of colour blindness; runs differ by dash
as well, so that a picture survives a black-and-white printer.
"""

from __future__ import annotations

import html

# Six of the eight: black is lost on dark pages, yellow on light ones.
RUN_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
RUN_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
REFERENCE_COLOUR = "#808080"
"""Lines that are no run: unigram entropy, targets, events. Readable on white and on near-black."""

# The codes that the `layers` stream stores. `choices.depth.plan.STATES` says the same; it cannot be imported here
# because choices import torch, so a test holds the two together.
STATES = ("running", "dropped", "frozen", "absent")
STATE_WORDS = ("running", "dropped", "frozen", "not yet grown")
STATE_COLOURS = ("#0072B2", "#E69F00", "#8FD3FF", "#D9D9D9")

PARTS = ("data", "forward", "backward", "optimizer", "other")
"""Parts of a step, in the order in which they happen."""
PART_COLOURS = ("#E69F00", "#56B4E9", "#0072B2", "#009E73", "#BBBBBB")

LONGEST_NAME = 48


def run_colour(index: int) -> str:
    """Colour of the ``index``-th run of a picture; they repeat after six, dashes then differ."""
    return RUN_COLOURS[index % len(RUN_COLOURS)]


def run_dash(index: int) -> str:
    """Plotly dash of the ``index``-th run."""
    # Shifted by one whenever the colours repeat: no two of the first 36 runs share both.
    return RUN_DASHES[(index // len(RUN_COLOURS) + index) % len(RUN_DASHES)]


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


def plotly_text(text: object, longest: int = LONGEST_NAME) -> str:
    """``plain`` for Plotly, which reads a subset of HTML in names, titles and annotations.

    Example:
        >>> plotly_text("<b>x")
        '&lt;b&gt;x'
    """
    return html.escape(plain(text, longest), quote=False)


def matplotlib_text(text: object, longest: int = LONGEST_NAME) -> str:
    """``plain`` for matplotlib, which reads ``$...$`` as mathematics and hides legend entries that start with ``_``."""
    line = plain(text, longest).replace("\\", "/").replace("$", r"\$")
    return f" {line}" if line.startswith("_") else line
