"""Static pictures: size, content, safety."""

from __future__ import annotations

import io
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from workbench.plots.curves import ALL_SCORED
from workbench.plots.static import (
    DOTS_PER_INCH,
    SIZE_INCHES,
    _draw_layers,
    _draw_loss,
    facts_html,
    summary_html,
    summary_png,
    summary_text,
    with_layers,
)
from workbench.telemetry.quantities import run_colour


def _pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def _near(pixels: np.ndarray, colour: str) -> int:
    target = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
    return int((np.abs(pixels - target).sum(-1) < 24).sum())


def test_layers_are_over_the_time_of_their_neighbours_to_the_end_of_the_run(view):
    telemetry = deepcopy(view.telemetry)
    last = telemetry.scalars[-1]
    # Layers are recorded every few steps: the last ones of a run have no record.
    del telemetry.layers[-3:]
    axes = Figure().subplots()
    _draw_layers(axes, [replace(view, telemetry=telemetry)])
    assert axes.get_xlabel() == "time of training (s)"
    assert axes.get_xlim() == (pytest.approx(0, abs=last["seconds"] / 50), pytest.approx(last["seconds"]))
    drawn = axes.collections[0].get_coordinates()[0, :, 0]
    assert drawn[-1] < last["seconds"], "nothing is made up of what was not recorded"


def test_the_score_of_all_tokens_is_filled(view):
    axes = Figure().subplots()
    _draw_loss(axes, [view, replace(view, status="running")])
    marks = [line for line in axes.lines if line.get_marker() == "o"]
    ends = [(len(mark.get_xdata()), mark.get_markerfacecolor() == "white", mark.get_linestyle()) for mark in marks]
    assert ends == [(4, True, ":"), (1, False, ":"), (4, True, ":")]
    assert [text.get_text() for text in axes.get_legend().texts].count(ALL_SCORED) == 1


def test_png_is_small_and_shows_the_runs(view, plateau):
    png = summary_png([view, plateau])
    assert png.startswith(b"\x89PNG")
    assert len(png) < 80_000
    pixels = _pixels(png)
    assert pixels.shape == (600, 1000, 3)
    assert _near(pixels[:290, :570], run_colour(0)) > 100
    assert _near(pixels[:290, :570], run_colour(1)) > 100


def test_seven_runs_keep_their_colours(view):
    runs = []
    for number in range(7):
        telemetry = deepcopy(view.telemetry)
        for record in telemetry.scalars:
            record["tokens_per_second"] = 1000.0 * (number + 1)
        runs.append(replace(view, id=f"20260101-000000-{number}", name=f"run {number}", telemetry=telemetry))
    pixels = _pixels(summary_png(runs))
    assert [colour for colour in map(run_colour, range(7)) if not _near(pixels, colour)] == []


def test_of_several_runs_the_layers_are_those_of_one_that_drops_some(view, plateau):
    steady = deepcopy(view)
    for record in steady.telemetry.layers:
        record["state"] = [0] * len(record["state"])
    assert any(len(set(record["state"])) > 1 for record in view.telemetry.layers)
    assert with_layers([steady, view]) is view
    assert with_layers([steady, deepcopy(steady)]) is steady
    steady.telemetry.layers.clear()
    assert with_layers([steady]) is None


def test_no_words_lie_across_the_curves(view, plateau):
    figure = Figure(figsize=SIZE_INCHES, dpi=DOTS_PER_INCH, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    ((loss, *_), _) = figure.subplots(2, 2, width_ratios=[3, 2])
    _draw_loss(loss, [view, plateau])
    canvas.draw()
    box = loss.get_window_extent()
    words = [loss.get_legend(), *loss.texts]
    assert all(not one.get_window_extent().overlaps(box) for one in words)
    assert not loss.get_legend().get_window_extent().overlaps(loss.xaxis.label.get_window_extent())
    names = [text.get_text() for text in loss.get_legend().get_texts()]
    assert any("learned: word frequencies" in name for name in names)
    assert any(name.startswith("neighbours") for name in names)


def test_png_without_data_differs_from_one_with(view, empty):
    assert _near(_pixels(summary_png([empty])), run_colour(0)) == 0
    assert len(summary_png([empty, view])) < 80_000


def test_html_is_static_and_escaped(view, evil, empty):
    page = summary_html([view, evil, empty])
    assert "<script" not in page.lower()
    assert "&lt;b&gt;$x_1$&lt;/script&gt;" in page
    assert "onerror=y&gt;" in page
    assert 'src="data:image/png;base64,' in page
    assert "http" not in page
    page.encode("utf-8")
    assert "<img" not in facts_html([view])


def test_runs_without_a_step_have_facts_and_no_picture(view, empty):
    page = summary_html([empty])
    assert "<img" not in page
    assert facts_html([empty]) in page
    assert "<img" in summary_html([empty, view])


def test_text_has_one_column_per_run(view, plateau, empty):
    text = summary_text([view, plateau, empty])
    line = next(line for line in text.splitlines() if line.startswith("what was learned"))
    assert "uses context: 0.07 nats below neighbour counts" in line
    assert "has learned word frequencies only" in line
    assert "not evaluated" in line
    assert "too early failed: RuntimeError" in text


def test_diverged_runs_are_drawn(root):
    from workbench.store.folder import RunFolder
    from workbench.store.view import RunView
    from workbench.telemetry.streams import TelemetryWriter

    from .synthetic import folder_of

    folder: RunFolder = folder_of(root, "nan", "nan", "failed", error="loss is not a number")
    writer = TelemetryWriter(folder.telemetry)
    for step in range(1, 20):
        writer.scalars(step, step * 0.1, step, loss=float("nan") if step > 10 else 5.0, lr=1e-3)
    writer.close()
    assert len(summary_png([RunView.read(folder)])) > 5_000


def test_no_runs():
    for function in (summary_png, summary_html, summary_text):
        with pytest.raises(ValueError, match="at least one"):
            function([])


@pytest.mark.process
def test_no_global_figure_and_no_torch():
    code = (
        "import sys, workbench.plots.static, workbench.plots.report, workbench.store.result;"
        "print([m for m in ('torch', 'matplotlib.pyplot', 'IPython', 'ipywidgets') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_where_all_layers_run_their_updates_are_drawn(view):
    still = [{"step": step, "state": [0] * 3, "update_ratio": [1e-3 * step, 2e-3, None]} for step in range(10, 60, 10)]
    axes = Figure().subplots()
    _draw_layers(axes, [replace(view, telemetry=replace(view.telemetry, layers=still))])
    assert axes.get_title(loc="left") == "layers: update / weight"
    assert np.ma.count(axes.collections[0].get_array()) == 10, "a layer without a value stays empty"
