"""The report of one or several runs: one HTML file with everything in it, readable offline and for good.

python -m workbench.plots.report RUN_FOLDER [RUN_FOLDER ...] [--out FILE]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import workbench
from workbench.base.errors import RunError, WorkbenchError, typed_line
from workbench.base.files import write_bytes
from workbench.base.text import plain
from workbench.client.titles import titled
from workbench.plots.activity import opening_quantity
from workbench.plots.curves import axes_of
from workbench.plots.forecast_compared import compared
from workbench.plots.forecast_facts import whole_forecast
from workbench.plots.forecast_page import comparison_html, forecast_html
from workbench.plots.layers import available, layers_figure
from workbench.plots.loss import LOSS_LINES, loss_figure
from workbench.plots.own import plots
from workbench.plots.page import page_html, place, write_page
from workbench.plots.ranks import ranks_figure, ranks_table, trained_together
from workbench.plots.scalar import scalar_figure
from workbench.plots.schedule import schedule_figure
from workbench.plots.speed import speed_figure
from workbench.plots.tables import (
    choices_table,
    environment_table,
    escape,
    events_table,
    fingerprint,
    heldout_table,
    plan_table,
    preparation_table,
    recipe_table,
    result_table,
    score_tables,
)
from workbench.store.folder import RunFolder
from workbench.store.measured import failure, learned_in_words
from workbench.store.score_table import is_same_but_seed, rows_of
from workbench.store.view import RunView
from workbench.telemetry.quantities import OF_OBJECTIVES, PER_LAYER, scalar

if TYPE_CHECKING:
    import plotly.graph_objects as go


def write_report(views: Sequence[RunView], path: str | Path) -> Path:
    """Write the report whole or not at all (aside, synced, renamed); returns its path.

    Args:
        views: the runs, in the order of their colours; the first is what speeds are compared with.
        path: the HTML file; missing folders are made.

    Raises:
        ValueError: no runs.
        OSError: the file cannot be written; an older report there is untouched.
    """
    # Often all that is kept of a run: a power cut must not leave an empty page under its name.
    return write_page(path, report_html(views))


def report_html(views: Sequence[RunView]) -> str:
    """Return the page as text: tables, figures as JSON, plotly.js once; no address outside the page.

    Raises:
        ValueError: no runs.
    """
    if not views:
        raise ValueError("no runs to report: give at least one RunView")
    figures: dict[str, go.Figure] = {}
    parts = (_head(views), _pictures(views, figures), _ahead(views), _recipes(views), _happened(views))
    body = "\n".join((*parts, _circumstances(views)))
    return page_html(" and ".join(plain(view.name) for view in views[:3]), body, figures)


def _head(views: Sequence[RunView]) -> str:
    title = " and ".join(escape(plain(view.name, 80)) for view in views)
    states = [(f"{view.id}: {view.status}", learned_in_words(view), *view.labels.tags) for view in views]
    stated = "".join(f'<p class="quiet">{escape(", ".join(parts))}</p>' for parts in states)
    errors = "".join(
        f'<p class="error" role="alert"><strong>{escape(plain(view.name))}</strong>\n{escape(failure(view))}</p>'
        for view in views
        if failure(view)
    )
    written = [
        note
        for view in views
        for note in (view.recipe.get("notes"), view.labels.notes, _forked(view), _steered(view))
        if note
    ]
    notes = "".join(f"<p>{escape(str(note))}</p>" for note in written)
    head = f"<header><h1>{title}</h1>{stated}{notes}</header>{errors}\n<main>"
    return f"{head}\n<h2>Result</h2>{result_table(views)}{_scores(views)}"


def _scores(views: Sequence[RunView]) -> str:
    """Return scores of benchmarks, what they are held against, and other seeds among these runs; empty without any."""
    found = []
    for view in views:
        same = [each.scores for each in views if each is not view and is_same_but_seed(each.recipe, view.recipe)]
        if rows := rows_of(view.scores, same):
            found.append(score_tables(plain(view.name), rows))
    return "\n<h2>Benchmarks</h2>" + "".join(found) if found else ""


def _steered(view: RunView) -> str:
    """Return what was changed while it trained, in a sentence; empty where nothing was."""
    changed = ", ".join(f"{path} {knob}" for path, knob in view.knobs.steered.items())
    return changed and f"{plain(view.name)} was steered: {changed}."


def _forked(view: RunView) -> str:
    """Return where a fork comes from and what was changed, in a sentence; empty for a run that began by itself."""
    origin = view.origin
    if origin is None:
        return ""
    changed = [f"{path} {change[0]} -> {change[1]}" for path, change in origin.diff.items() if path != "name"]
    fresh = "; the optimizer began without state" if origin.fresh else ""
    where = f"{plain(view.name)} was forked from {plain(origin.name)} ({origin.run}) at step {origin.step:,}"
    return f"{where}: {', '.join(changed) or 'nothing changed'}{fresh}."


def _ahead(views: Sequence[RunView]) -> str:
    """Forecast and measured side by side, for the runs that have a forecast; empty when none has."""
    parts = []
    for view in views:
        found = whole_forecast(view.forecast)
        if found is not None:
            whole = f"<details><summary>The forecast</summary>{forecast_html(found)}</details>"
            parts.append(comparison_html(compared(found, view), plain(view.name)) + whole)
    return "\n".join(["<h2>Forecast and measured</h2>", *parts]) if parts else ""


def _recipes(views: Sequence[RunView]) -> str:
    """Return the recipe of one run, or what differs between several, with every knob folded away below."""
    several = len(views) > 1
    heading = "What differs between the recipes" if several else "Recipe"
    tables = recipe_table(views, differing_only=True) if several else choices_table(views[0].recipe, views[0].knobs)
    whole = f"<details><summary>Every knob</summary>{recipe_table(views, differing_only=False)}</details>"
    prepared = [(view, text) for view in views if (text := preparation_table(view))]
    texts = "".join(f"<h3>Preparation of the text of {escape(plain(view.name))}</h3>{text}" for view, text in prepared)
    return f"<h2>{heading}</h2>{tables}{whole}{texts}"


def _pictures(views: Sequence[RunView], figures: dict[str, go.Figure]) -> str:
    """Return places for the figures, filled into ``figures`` under ``place/variant``."""
    places = ["<h2>Pictures</h2>"]
    # Every x axis is drawn now: the page has no Python that could draw another one later.
    for x in axes_of(views):
        figures[f"loss/{x}"] = loss_figure(views, x)
        figures[f"speed/{x}"] = speed_figure(views, x)
        figures[f"schedule/{x}"] = schedule_figure(views, x)
    axes = {x: f"over {label}" for x, label in axes_of(views).items()}
    copied = any(view.references.training_baseline is not None for view in views)
    more = ", and what training reaches without context: it shows some of the words that it asks for" * copied
    places.append(
        place(
            "loss", axes, f"{LOSS_LINES} Grey lines: what word frequencies and the nearest words alone reach on "
            f"held-out text{more}.",
        )
    )  # fmt: skip
    seen = {name for view in views for record in view.telemetry.scalars for name in record}
    told = [name for name in OF_OBJECTIVES if name in seen]
    for name in told:
        figures[f"objective/{name}"] = scalar_figure(views, name)
    if told:
        options = {name: scalar(name).label for name in told}
        places.append(
            place("objective", options, "The parts of the loss, before their weights, and what else it measures.")
        )
    places.append(place("speed", axes, "MFU counts useful work only: real tokens, no padding, no recomputation."))
    for index, view in enumerate(trained_together(views)):
        figures[f"ranks{index}/step"] = ranks_figure(view)
        places.append(place(f"ranks{index}", {"step": "over steps"}, "Who waits for whom: a dark row is the process "
                            "that all others wait for."))  # fmt: skip
        places.append(f"<details><summary>The same as a table</summary>{ranks_table(view)}</details>")
    for index, view in enumerate(views):
        # Without records of layers the picture still appears, and says that there are none.
        first = opening_quantity(view.telemetry.layers)
        quantities = sorted(available(view) or [first], key=lambda name: name != first)
        for quantity in quantities:
            figures[f"layers{index}/{quantity}"] = layers_figure(view, quantity)
        options = {quantity: PER_LAYER[quantity].label for quantity in quantities}
        places.append(
            place(
                f"layers{index}", options, "What each layer did, as the training method decided it; the more ink, the "
                "more work. Below: layers at work at each step, dark forward and backward, light forward only. Right: "
                "the share of the run in which each layer was at work. Empty space there is work saved.",
            )
        )  # fmt: skip
    places.append(place("schedule", axes, "Values in force at each step, knob changes during the run included."))
    places += _own(views, figures, axes)
    return "\n".join(places)


def _own(views: Sequence[RunView], figures: dict[str, go.Figure], axes: dict[str, str]) -> Iterator[str]:
    """Yield places of the pictures of other packages; one that fails says so, and the report goes on."""
    for name, plot in plots().items():
        try:
            figures |= {f"own-{name}/{x}": plot.make(views, x) for x in axes}
        except Exception as error:
            yield f'<p class="error">{escape(f"plot {name}: {typed_line(error)}")}</p>'
        else:
            yield place(f"own-{name}", axes, plot.help)


def _happened(views: Sequence[RunView]) -> str:
    parts = ["<h2>Held-out evaluations and events</h2>"]
    for view in views:
        name = escape(plain(view.name))
        parts.append(f"<details><summary>Held-out losses of {name}</summary>{heldout_table(view)}</details>")
        parts.append(f"<details><summary>Events of {name}</summary>{events_table(view)}</details>")
        if plan := plan_table(view):
            parts.append(f"<details><summary>How the execution of {name} was chosen</summary>{plan}</details>")
    return "\n".join(parts)


def _circumstances(views: Sequence[RunView]) -> str:
    data = "".join(
        f"<details><summary>Data of {escape(plain(view.name))}</summary>{fingerprint(view)}</details>" for view in views
    )
    return (
        f"<h2>Environment</h2><details><summary>Versions, device, measured rates</summary>{environment_table(views)}"
        f'</details>{data}\n</main>\n<footer><p class="quiet">workbench {workbench.__version__}</p></footer>'
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Return command line; returns the exit code: 0 written, 2 the request was wrong."""
    parser = argparse.ArgumentParser(prog="python -m workbench.plots.report", description="One HTML page about runs.")
    parser.add_argument("folders", nargs="+", metavar="RUN_FOLDER", type=Path, help="folder of a run")
    parser.add_argument("--out", type=Path, help="file to write; without it, report.html in the folder of a single run")
    parser.add_argument("--place", action="append", default=[], metavar="RUN=NUMBER", help="colour of a run, by its id")
    options = parser.parse_args(arguments)
    try:
        places = {run: int(number) for run, _, number in (place.rpartition("=") for place in options.place)}
        if options.out is None and len(options.folders) > 1:
            raise RunError(f"{len(options.folders)} runs in one report: say where it goes with --out FILE")
        folders = [RunFolder(path.absolute()) for path in options.folders]
        for folder in folders:
            # A mistyped path reads as an empty run and would become an empty report.
            if not folder.recipe.is_file():
                raise RunError(f"'{folder.path}' is not the folder of a run (no recipe.json in it)")
        views = [replace(view, place=places.get(view.id)) for view in titled(list(map(RunView.read, folders)), folders)]
        if options.out is None:
            # Not through `write_report`, which makes missing folders: a run that was just deleted must not reappear.
            write_bytes(folders[0].report, report_html(views).encode())
        else:
            write_report(views, options.out)
        print(options.out or folders[0].report)
    except (WorkbenchError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
