"""Makes the pictures in cards: of depth methods from short real runs of their presets, of LANS from result files.

    python docs/pictures.py            # all of them, a minute or two each on two cores
    python docs/pictures.py stacking   # one

Run it again when the picture, a method or a preset changes. The runs are kept in a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from workbench import launch, presets
from workbench.base.errors import unknown
from workbench.base.files import write_bytes
from workbench.client.run import Run
from workbench.plots.activity import Work
from workbench.plots.layers_static import ENTRIES, Activity, small_png
from workbench.plots.palette import matplotlib_text
from workbench.recipes.recipe import Recipe
from workbench.store.view import RunView
from workbench.telemetry.quantities import WORK_PARTS

CARDS = Path(__file__).parent.parent / "workbench" / "choices" / "depth"
PRESETS = {"progressive_drop": "pld", "stacking": "stacking", "multi_stage": "mslt"}
"""Kind of the depth method, which names its card, and the preset that shows it."""
RESULTS = Path(__file__).parent / "results"
BATCHES = "lans"
"""Kind of the optimizer whose card shows samples to a score against the batch."""
OPTIMIZERS = {"adamw": ("AdamW", "tab:blue"), "adam": ("Adam", "tab:blue"), "lamb": ("LAMB", "tab:orange"), "lans": (
    "LANS", "tab:green")}  # fmt: skip
MOST_BYTES = 80_000
SIZE_INCHES = (8.4, 4.4)
DOTS_PER_INCH = 100


def recipe_of(kind: str, steps: int) -> Recipe:
    """The preset of a depth method, short, and with a record of its layers often enough to see single decisions."""
    return presets.get(PRESETS[kind]).with_(
        budget={"amount": steps, "unit": "steps", "evaluations": 1, "evaluation_tokens": 2048},
        data={"batch_size": 4, "sequence_length": 32},
        # Compiled, a run of seconds would be spent on compiling; fp32 is the fast one where a CPU has no bf16 units.
        execution={"compile": False, "precision": "fp32", "threads": 1, "layers_every": 2},
    )


def make(kind: str, steps: int, runs: Path) -> Path:
    """Train, draw and write one picture beside its card; returns its path."""
    run: Run = launch(recipe_of(kind, steps), runs_dir=runs)
    run.wait()
    png = layers_png(run.view(), title=kind)
    if len(png) > MOST_BYTES:
        raise ValueError(f"the picture of {kind} has {len(png)} bytes, more than {MOST_BYTES}: draw fewer columns")
    path = CARDS / f"{kind}.png"
    write_bytes(path, png)
    return path


def layers_png(view: RunView, title: str) -> bytes:
    """The layer picture of one run: states, layers at work at each step, share of the run per layer.

    Args:
        view: a run that has recorded its layers.
        title: above the picture.

    Returns:
        PNG, 840 x 440 pixels on white, 64 colours, well under 80 kB.
    """
    picture = Activity.of(view)
    figure = Figure(figsize=SIZE_INCHES, dpi=DOTS_PER_INCH, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    ((states, shares), (counts, corner)) = figure.subplots(
        2, 2, width_ratios=[6, 1], height_ratios=[5, 2], sharex="col", sharey="row"
    )
    corner.remove()
    states.set_title(
        f"{matplotlib_text(title)}\n{picture.done.summary()}", fontsize=9.5, loc="left",
        pad=20 + 14 * -(-len(picture.present) // ENTRIES),
    )  # fmt: skip
    picture.draw(states)
    picture.legend(states, fontsize=8.5, above=1.09)
    _draw_shares(shares, picture.done)
    _draw_counts(counts, picture)
    canvas.draw()
    return small_png(np.asarray(canvas.buffer_rgba()))


def _draw_shares(axes: Axes, done: Work) -> None:
    forward, trained = WORK_PARTS
    layer_L = np.arange(1, len(done.forward) + 1)
    axes.barh(layer_L, done.forward, color=forward.colour, height=0.75)
    axes.barh(layer_L, done.trained, color=trained.colour, height=0.75)
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.5, 1], ["0", "50%", "100%"], fontsize=8)
    axes.set_title("share of the run", fontsize=8)
    axes.tick_params(labelbottom=True, labelleft=False, left=False)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_counts(axes: Axes, picture: Activity) -> None:
    done = picture.done
    for part, shares_LK in zip(WORK_PARTS, (done.forward_LK, done.trained_LK), strict=True):
        count_K = shares_LK.sum(axis=0)[picture.columns]
        axes.stairs(count_K, picture.edges, fill=True, color=part.colour, label=part.words)
    axes.set_ylim(0, len(done.forward_LK))
    axes.set_ylabel("layers at work", fontsize=8)
    axes.set_xlabel("optimizer steps", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    if (done.trained < done.forward - 1e-9).any():
        legend = axes.legend(
            fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.01, 0.95), borderaxespad=0.0,
            handlelength=1.2, handletextpad=0.5,
        )  # fmt: skip
        legend.set_in_layout(False)
    picture.mark(axes, labelled=False)


def batches_png() -> bytes:
    """Draw samples to a score against the batch: ours to the left, published ones of MLPerf to the right."""
    ours = json.loads((RESULTS / "race-batches.json").read_text(encoding="utf-8"))
    theirs = json.loads((RESULTS / "scale-published.json").read_text(encoding="utf-8"))["samples"]
    here = [(each["optimizer"], each["rows"], each["samples_to_score"]) for each in ours["arms"].values()]
    there = [(each["optimizer"].lower(), each["batch"], each["samples"]) for each in theirs]
    figure = Figure(figsize=(8.4, 3.4), dpi=DOTS_PER_INCH, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    titles = (f"here: {ours['score_nats']:g} nats, 2 layers x 64", "MLPerf: BERT-large, accuracy 0.72")
    for axes, title, points, line in zip(figure.subplots(1, 2), titles, (here, there), ("o-", "o"), strict=True):
        for kind, (name, colour) in OPTIMIZERS.items():
            found = sorted((rows, samples) for each, rows, samples in points if each == kind and samples)
            if found:
                axes.plot(*zip(*found, strict=True), line, color=colour, label=name)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.set_ylim(bottom=0)
        axes.set_title(title, fontsize=9.5)
        axes.set_xlabel("rows of a batch")
        axes.set_ylabel("samples to the score")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=8.5, frameon=False, loc="lower right")
    canvas.draw()
    return small_png(np.asarray(canvas.buffer_rgba()))


def main() -> None:
    """Command line."""
    legal = [*PRESETS, BATCHES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(legal)}; without one, all of them")
    parser.add_argument("--steps", type=int, default=120, help="optimizer steps of each run")
    asked = parser.parse_args()
    for kind in asked.kinds:
        if kind not in legal:
            parser.error(unknown("picture", kind, legal))
    if BATCHES in (asked.kinds or legal):
        path = CARDS.parent / "optimizers" / f"{BATCHES}.png"
        write_bytes(path, batches_png())
        print(path)
    with tempfile.TemporaryDirectory() as runs:
        for kind in [each for each in asked.kinds or legal if each in PRESETS]:
            print(make(kind, asked.steps, Path(runs)))


if __name__ == "__main__":
    main()
