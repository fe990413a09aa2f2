"""Quantities of telemetry, horizontal axes, layer states, words, colours and dashes of every picture.

Plots and tables read it here, the page through ``jupyter/frontend/src/quantities.js``, which
``python -m workbench.telemetry.quantities`` writes. Standard library only.

Colours: four of Okabe and Ito's (2008) and four found by search, so that every pair differs under the common forms of
colour blindness and each has a contrast of 3 on white and on near-black (tests/telemetry/test_quantities.py): one list
serves both themes. Runs differ by dash as well, so that a picture survives a black-and-white printer.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from workbench.telemetry.baselines import Learned, learned_briefly
from workbench.telemetry.speed import SPEED_SECONDS

PAGE_FILE = Path(__file__).parents[1] / "jupyter" / "frontend" / "src" / "quantities.js"
"""The same for the page's bundle."""

RUN_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#7848F8", "#E00043", "#6C79F0", "#307878")
RUN_DASHES: tuple[tuple[int, ...], ...] = (
    (), (9, 4), (3, 3), (11, 3, 3, 3), (6, 2), (2, 5), (14, 4), (8, 3, 2, 3, 2, 3),
)  # fmt: skip
"""Pixels drawn and left out in turn; empty is a solid line."""
REFERENCE_COLOUR = "#808080"
"""Lines other than runs: baselines, targets, events. Readable on white and on near-black."""
LEVEL_DASHES: dict[str, tuple[int, ...]] = {
    "word frequencies": (2, 4),
    "neighbours": (10, 3, 2, 3),
    "training without context": (1, 6),
    "target": (7, 3),
}
"""Horizontal lines of loss plots, by their name."""
LEVEL_HELP = {
    "word frequencies": "what a model that ignores its input would score, knowing only how often each token occurs",
    "neighbours": "what a model that sees the nearest tokens alone (both neighbours of a masked one) would score",
    "training without context": "what the training loss is without context: some of the words it asks for are shown",
    "target": "the held-out loss to reach",
}
"""Meanings of the lines, shown under the pointer."""
SECONDS_TRAINED, SECONDS_AHEAD = "seconds of training", "seconds, forecast"
"""Titles of times in tables and on axes: as a run has measured them, and as they were forecast."""
MEMORY_FOR_TRAINING = "memory for training (GiB)"
"""Label of the most memory that training took, beyond what its process held before there was a model."""
SMOOTHING = 0.012
"""Share of all steps after which a sample weighs 1/e in a smoothed curve, unless somebody chooses otherwise."""
RAMP = ("#14213F", "#1D4B86", "#23789A", "#3DA58F", "#98C66C", "#F3E379")
"""Heat maps from low to high: dark to light with one direction of hue, readable in grey."""


@dataclass(frozen=True)
class Quantity:
    """A number that a run records.

    Attributes:
        title: for people.
        unit: of the values as they are drawn; ``%`` draws a share in hundredths.
        scale: ``log`` for values that differ by orders of magnitude.
        colour: of a part of a step, wherever the parts are drawn together; empty for all else.
        per_layer: a stream of vectors, one value per layer.
        help: what it is, in a sentence, and how it was measured where that is not seen.
    """

    name: str
    title: str
    help: str
    unit: str = ""
    scale: Literal["linear", "log"] = "linear"
    colour: str = ""
    per_layer: bool = False

    @property
    def factor(self) -> float:
        """Factor from recorded values to :attr:`unit`."""
        return 100.0 if self.unit == "%" else 1.0

    @property
    def label(self) -> str:
        """Title and unit, for axes and legends."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


@dataclass(frozen=True)
class Axis:
    """A horizontal axis: ``title`` under a plot, ``short`` on a button and over a column, ``unit`` of its numbers."""

    name: str
    title: str
    short: str
    unit: str = ""

    @property
    def label(self) -> str:
        """Title and unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


ENTROPY_EVERY = 5
"""Layer records per reading of the attention entropy: it is the one statistic that needs a forward pass of its own."""

AXES = (
    Axis("step", "optimizer steps", "Steps"),
    Axis("tokens", "tokens", "Tokens"),
    Axis("seconds", "time of training", "Time", unit="s"),
    Axis("flops", "useful FLOPs", "FLOPs"),
)

QUANTITIES = (
    Quantity("loss", "training loss", "mean over the tokens that a step trains on; lower is better", unit="nats"),
    Quantity("heldout_loss", "held-out loss", "on text that is never trained on; lower is better", unit="nats"),
    Quantity(
        "bits_per_byte",
        "held-out bits per byte",
        "held-out loss per byte of text, which compares between tokenizers; lower is better",
    ),
    Quantity("lr", "learning rate", "factor of the optimizer's step, as the schedule has it at this step"),
    Quantity("weight_decay", "weight decay", "how strongly each step draws the weights towards zero"),
    Quantity("grad_norm", "gradient norm", "length of the gradient of all weights, before it is clipped"),
    Quantity("accuracy", "accuracy", "share of the predicted tokens whose most likely guess is right"),
    Quantity("token_loss", "loss of tokens", "without the other parts of the loss", unit="nats"),
    Quantity("span_boundary", "loss of span edges", "of hidden tokens, from the edges", unit="nats"),
    Quantity("sentence", "loss of sentences", "ln 2 is chance", unit="nats"),
    Quantity("sentence_accuracy", "accuracy of sentences", "a half is chance"),
    Quantity("causal_rows", "loss of causal rows", "of the next token, over the rows read from the left", unit="nats"),
    Quantity("masked_rows", "loss of masked rows", "of hidden tokens, over the rows read from both sides", unit="nats"),
    Quantity("causal_rows_accuracy", "accuracy of causal rows", "share of next tokens that are guessed right"),
    Quantity("masked_rows_accuracy", "accuracy of masked rows", "share of hidden tokens that are guessed right"),
    Quantity("permuted_loss", "held-out loss in order", "of hidden tokens, one after another", unit="nats"),
    Quantity("next_token_loss", "held-out loss of the next token", "read from the left alone", unit="nats"),
    Quantity("diffusion_bound", "held-out bound of diffusion", "of a token, over all shares hidden", unit="nats"),
    Quantity("ahead_1", "loss of the next token", "without those of further tokens; lower is better", unit="nats"),
    *(
        Quantity(f"ahead_{ahead}", f"loss {ahead} tokens ahead", "before its weight; lower is better", unit="nats")
        for ahead in (2, 3, 4)
    ),
    *(
        Quantity(f"ahead_{ahead}_accuracy", f"accuracy {ahead} tokens ahead", "share of these tokens guessed right")
        for ahead in (2, 3, 4)
    ),
    Quantity("objective.phase", "phase of the objective", "number of the objective that is trained, counted from 1"),
    Quantity("objective.causal_share", "share of causal rows", "of the rows of a step, and of its loss"),
    Quantity("objective.mask_rate", "mask rate", "share of the tokens that are to be predicted", unit="%"),
    Quantity("objective.sentence_weight", "weight of sentences", "factor of their part of the loss"),
    Quantity("objective.further_weight", "weight of further tokens", "factor of their part of the loss"),
    Quantity("objective.main_weight", "weight of the main network", "factor of its part of the loss"),
    Quantity("objective.keep", "share of labels that count", "of those of each row, the ones learned from", unit="%"),
    Quantity("every_token_loss", "loss of every token", "also over the tokens that are not learned from", unit="nats"),
    Quantity("depth.theta", "keep probability of the last layer", "with which it runs in a micro-batch"),
    Quantity("depth.path", "path length", "share of the layers that run on average", unit="%"),
    Quantity("depth.share", "share of frozen layers", "of all layers, counted from the embedding", unit="%"),
    Quantity("data.epochs", "epochs", "passes over the training text so far"),
    Quantity("data.order.open", "open share of the text", "the documents that rows are drawn from so far", unit="%"),
    Quantity(
        "generator_loss",
        "generator's loss",
        "of the small network that fills in masked tokens, over the tokens that it fills in; lower is better",
        unit="nats",
    ),
    Quantity(
        "main_loss",
        "main network's loss",
        "of the network that judges what the generator has filled in, over all tokens, before its weight",
        unit="nats",
    ),
    Quantity("precision", "precision", "share of the tokens said to be replaced that are", unit="%"),
    Quantity("recall", "recall", "share of the replaced tokens that are found", unit="%"),
    Quantity("corrected", "corrected", "share of the replaced tokens for which the true one is chosen", unit="%"),
    Quantity("main_accuracy", "main network's accuracy", "share of all tokens that it judges right", unit="%"),
    Quantity(
        "always_real",
        "accuracy of always saying real",
        "share of all tokens that were not replaced, which a judge that reads nothing reaches",
        unit="%",
    ),
    Quantity(
        "layers_run",
        "layers run per micro-batch",
        "mean over the micro-batches of a step; fewer than all where a depth method skips layers",
    ),
    Quantity("data.batch_size", "rows per step", "rows of text that one optimizer step trains on"),
    Quantity("data.sequence_length", "tokens per row", "length of each row that is trained on"),
    Quantity("tokens_per_second", "speed", "tokens trained on per second since the record before", unit="tokens/s"),
    Quantity("mfu", "MFU", "share of the device's peak FLOPs; above 100%, it was measured beside other work", unit="%"),
    Quantity("memory_gib", "peak memory", "most memory held at once so far", unit="GiB"),
    Quantity(
        "processor_share",
        "share of a processor that training has",
        "below 100% other processes take turns with this run",
        unit="%",
    ),
    Quantity(
        "load",
        "load of this machine",
        "mean of the last minute; above the number of cores, processes wait for each other",
    ),
    Quantity("step_ms", "step time", "wall-clock time of one optimizer step", unit="ms"),
    Quantity("data_ms", "data time", "waiting for the next batch", unit="ms", colour="#E69F00"),
    Quantity("forward_ms", "forward time", "computing the loss", unit="ms", colour="#56B4E9"),
    Quantity("backward_ms", "backward time", "computing the gradients", unit="ms", colour="#0072B2"),
    Quantity("optimizer_ms", "optimizer time", "changing the weights", unit="ms", colour="#009E73"),
    Quantity(
        "sent_mib",
        "sent to other processes",
        "gradients and weights that each process sends in a step, as a ring of all passes them on",
        unit="MiB",
    ),
    Quantity("waited_ms", "waiting for other processes", "for their gradients and weights", unit="ms"),
    Quantity("telemetry_ms", "telemetry time", "measuring and writing these numbers", unit="ms", colour="#CC79A7"),
    Quantity("state", "activity", "what each layer does in the step that was recorded", per_layer=True),
    Quantity(
        "ran",
        "share of micro-batches in which it ran",
        "over all micro-batches since the record before",
        per_layer=True,
    ),
    Quantity("keep", "keep probability", "with which the depth method has the layer run", per_layer=True),
    Quantity("scale", "residual scale", "factor of what the layer adds to its input", per_layer=True),
    Quantity(
        "grad_norm",
        "gradient norm",
        "length of the gradient of a layer's weights, before it is clipped",
        scale="log",
        per_layer=True,
    ),
    Quantity(
        "update_ratio",
        "update / weight",
        "length of one step's change of a layer's weights over that of the weights; near 0.001 is usual",
        scale="log",
        per_layer=True,
    ),
    Quantity("activation_rms", "activation RMS", "root mean square of what a layer hands on", per_layer=True),
    Quantity(
        "attention_entropy",
        "attention entropy",
        "how widely a layer attends, 0 where to one token alone; takes a forward pass of its own, so it is measured "
        f"in one of {ENTROPY_EVERY} records of the layers, and the columns between are empty",
        unit="nats",
        per_layer=True,
    ),
    Quantity(
        "trust_ratio",
        "trust ratio",
        "factor by which the optimizer scales a layer's step, the mean over its matrices",
        scale="log",
        per_layer=True,
    ),
)
OF_PARTS = {
    "heldout_loss": Quantity("", "held-out loss of", "on the held-out text of one part of a mixture", unit="nats"),
    "data.tokens": Quantity("", "tokens read of", "of one part of a mixture, since the run began"),
    "data.epochs": Quantity("", "epochs of", "passes over the training text of one part of a mixture"),
    "waiting_ms": Quantity(
        "",
        "waiting for others: process",
        "in the step before, beyond the sending itself; 0: all waited for this one",
        unit="ms",
    ),
}
"""Scalars of each part of a mixture, or of each process, by what stands before the ``/`` and the part's name."""
SCALARS = {quantity.name: quantity for quantity in QUANTITIES if not quantity.per_layer}
PER_LAYER = {quantity.name: quantity for quantity in QUANTITIES if quantity.per_layer}
PARTS = {quantity.name.removesuffix("_ms"): quantity.colour for quantity in QUANTITIES if quantity.colour}
"""Parts of a step and their colours, in the order in which they happen."""

OF_OBJECTIVES = (
    "precision", "recall", "corrected", "main_accuracy", "always_real", "generator_loss", "main_loss",
    "token_loss", "span_boundary", "sentence", "sentence_accuracy", "causal_rows", "masked_rows",
    "causal_rows_accuracy", "masked_rows_accuracy", "ahead_1",
    *(f"ahead_{ahead}{what}" for ahead in (2, 3, 4) for what in ("", "_accuracy")), "every_token_loss",
)  # fmt: skip
"""Scalars of single objectives, which a report draws where there are any."""


def scalar(name: str) -> Quantity:
    """Return the declaration of a scalar; a scheduled knob without one goes by its path in the recipe.

    Example:
        >>> scalar("lr").label, scalar("memory_gib").label, scalar("depth.own_knob").label
        ('learning rate', 'peak memory (GiB)', 'depth.own_knob')
    """
    of, _, part = name.partition("/")
    if part and of in OF_PARTS:
        return replace(OF_PARTS[of], name=name, title=f"{OF_PARTS[of].title} {part}")
    return SCALARS.get(name) or Quantity(name, name, "a knob of the recipe that changes while the run trains")


@dataclass(frozen=True)
class LayerState:
    """State of one layer in one micro-batch, as every picture shows it.

    Attributes:
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


LAYER_STATES = (
    LayerState("running", "runs and trains", "runs and trains", "#0072B2", "########.", "█"),
    LayerState(
        "dropped", "skipped this time", "is skipped this time, its input passes unchanged",
        "#D55E00", "...##....", "━",
    ),
    LayerState(
        "frozen", "runs, but is not trained (frozen)", "runs, but is not trained (frozen)",
        "#56B4E9", "####.....", "▄",
    ),
    LayerState("absent", "does not exist yet", "does not exist yet", "#8A9099", "########.", "□", opacity=0.16),
    LayerState(
        "grown", "new: trained from fresh weights", "new, trained from fresh weights", "#009E73", "###..###.", "="
    ),
    LayerState("copied", "new: started as a copy", "started as a copy of a lower layer", "#CC79A7", "##.##.##.", "≡"),
)  # fmt: skip
"""In the order of the codes that telemetry stores."""
STATES = tuple(state.name for state in LAYER_STATES)
SLICES = len(LAYER_STATES[0].shape)
"""Slices of a layer's row; the last one is the gap to the row above."""


@dataclass(frozen=True)
class WorkPart:
    """A kind of work in the layers, as the strips beside the layer picture show it.

    Attributes:
        done: goes after "8.8 layers ".
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


def run_colour(index: int) -> str:
    """Return colour of the ``index``-th run of a picture; after eight they repeat with other dashes."""
    return RUN_COLOURS[index % len(RUN_COLOURS)]


def run_dash(index: int) -> tuple[int, ...]:
    """Return dash of the ``index``-th run: of :data:`RUN_DASHES`."""
    # Shifted by one whenever the colours repeat: no two of the first 64 runs share both.
    return RUN_DASHES[(index // len(RUN_COLOURS) + index) % len(RUN_DASHES)]


def declared() -> dict[str, Any]:
    """All of this as JSON-able data, for the page."""
    return {
        "runColours": RUN_COLOURS,
        "runDashes": RUN_DASHES,
        "levelDashes": LEVEL_DASHES,
        "levelHelp": LEVEL_HELP,
        "learnedBriefly": {word: learned_briefly(word) for word in get_args(Learned)},
        "smoothing": SMOOTHING,
        "speedSeconds": SPEED_SECONDS,
        "ramp": RAMP,
        "axes": [asdict(axis) for axis in AXES],
        "scalars": {name: asdict(quantity) | {"label": quantity.label} for name, quantity in SCALARS.items()},
        "perLayer": {name: asdict(quantity) | {"label": quantity.label} for name, quantity in PER_LAYER.items()},
        "parts": PARTS,
        "layerStates": [asdict(state) for state in LAYER_STATES],
        "workParts": [asdict(part) for part in WORK_PARTS],
    }


def page_text() -> str:
    """Return content of :data:`PAGE_FILE`: a declaration a line, so that a bundle holds those alone that it uses."""
    lines = [f"export const {name} = {json.dumps(value)};\n" for name, value in declared().items()]
    return "// Written by `python -m workbench.telemetry.quantities`.\n" + "".join(lines)


if __name__ == "__main__":
    PAGE_FILE.write_text(page_text(), encoding="ascii")
