"""Colours, dashes and words that every picture shares, and names made safe to draw.

Colours are Okabe and Ito's (2008), distinguishable under all common forms of colour blindness; runs differ by dash
as well, so that a picture survives a black-and-white printer.
"""

from __future__ import annotations

import html
from dataclasses import dataclass

# Six of the eight: black is lost on dark pages, yellow on light ones.
RUN_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
RUN_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
REFERENCE_COLOUR = "#808080"
"""Lines that are no run: unigram entropy, targets, events. Readable on white and on near-black."""


@dataclass(frozen=True)
class State:
    """What one layer does in one micro-batch, as every picture shows it.

    Attributes:
        name: the layer plan's word.
        words: the legend.
        sentence: goes after "Layer 7 at step 420: ".
        colour: of its ink, on white and on near-black.
        shape: its ink from the bottom of the layer's row to the top, ``#`` or ``.`` for each of nine slices. The more
            ink the more work: a skipped layer is a line that passes through, a frozen one (half the height) computes
            forward only. So the picture reads without colours, too.
        mark: a character that looks like the shape, for legends that are text.
        opacity: of the ink; what does not exist yet is a faint place kept free.
    """

    name: str
    words: str
    sentence: str
    colour: str
    shape: str
    mark: str
    opacity: float = 1.0


# In the order of the codes that the `layers` stream stores. `choices.depth.plan.STATES` says the same; it cannot be
# imported here because choices import torch, so a test holds the two together, and another one the page's copy.
LAYER_STATES = (
    State("running", "runs and trains", "runs and trains", "#0072B2", "########.", "█"),
    State(
        "dropped", "skipped this time", "is skipped this time, its input passes unchanged",
        "#D55E00", "...##....", "━",
    ),
    State(
        "frozen", "runs, but is not trained (frozen)", "runs, but is not trained (frozen)",
        "#56B4E9", "####.....", "▄",
    ),
    State("absent", "does not exist yet", "does not exist yet", "#8A9099", "########.", "□", opacity=0.16),
    State("grown", "new: trained from fresh weights", "new, trained from fresh weights", "#009E73", "###..###.", "="),
    State("copied", "new: started as a copy", "started as a copy of a lower layer", "#CC79A7", "##.##.##.", "≡"),
)  # fmt: skip
STATES = tuple(state.name for state in LAYER_STATES)
STATE_COLOURS = tuple(state.colour for state in LAYER_STATES)
SLICES = len(LAYER_STATES[0].shape)
"""Slices of a layer's row; the last one is the gap to the row above."""


@dataclass(frozen=True)
class WorkPart:
    """A kind of work in the layers, as the strips beside the layer picture show it.

    Attributes:
        done: goes after "8.8 layers ".
        words: the legend: what the stretch of this colour stands for.
        colour: as that of the state in which a layer does no other work.
    """

    done: str
    words: str
    colour: str


# Forward first: backward is drawn over it, for a layer that is trained is computed forward too.
WORK_PARTS = (
    WorkPart("computed forward", "forward only", "#56B4E9"),
    WorkPart("computed backward", "forward and backward", "#0072B2"),
)

PARTS = ("data", "forward", "backward", "optimizer", "telemetry", "other")
"""Parts of a step, in the order in which they happen."""
PART_COLOURS = ("#E69F00", "#56B4E9", "#0072B2", "#009E73", "#CC79A7", "#BBBBBB")

KNOB_TITLES = {
    "lr": "learning rate",
    "weight_decay": "weight decay",
    "layers_run": "layers run per micro-batch",
    "data.batch_size": "rows per step",
    "data.sequence_length": "tokens per row",
}
"""What pictures call a knob that moves; others go by their path in the recipe."""

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
