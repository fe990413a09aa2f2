"""The layer picture."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.plots.activity import work
from workbench.plots.layers import MOST_COLUMNS, available, layers_figure
from workbench.store.view import RunView
from workbench.telemetry.quantities import LAYER_STATES, SLICES
from workbench.telemetry.streams import TelemetryWriter


def _rows(figure) -> np.ndarray:
    """States as they are seen, (layers, slices, columns), NaN without ink."""
    z = np.asarray(figure.data[0].z)
    return z.reshape(-1, SLICES, z.shape[1])


def test_states_in_words_and_places(view):
    figure = layers_figure(view)
    asked = figure.data[1]
    z = np.asarray(asked.z)
    assert z.shape == (6, 40)
    for record, column in zip(view.telemetry.layers, z.T, strict=True):
        assert record["state"] == column.tolist()
    assert asked.text[5][0] == "does not exist yet"
    assert asked.text[0][-1] == "runs, but is not trained (frozen)"
    copied = np.argwhere(z == 5)[0]
    assert asked.text[copied[0]][copied[1]] == f"started as a copy of layer {copied[0] - 2}"
    assert asked.hovertemplate.startswith("Layer %{y} at step %{customdata}: %{text}")
    assert np.asarray(asked.customdata)[0].tolist() == [record["step"] for record in view.telemetry.layers]


def test_states_are_drawn_in_their_shapes(view):
    figure = layers_figure(view)
    codes_LK, rows = np.asarray(figure.data[1].z), _rows(figure)
    assert figure.data[0].hoverinfo == "skip"
    for code, state in enumerate(LAYER_STATES):
        for layer, column in np.argwhere(codes_LK == code)[:5]:
            drawn = "".join("." if np.isnan(value) else "#" for value in rows[layer, :, column])
            assert drawn == state.shape
            assert set(rows[layer, :, column][~np.isnan(rows[layer, :, column])]) == {code}
    # The legend has the states that occur, in words, and nothing else.
    words = [trace.name for trace in figure.data if trace.name and trace.showlegend is not False]
    present = [LAYER_STATES[code].words for code in sorted(set(codes_LK.ravel().tolist()))]
    assert [word.partition("</span> ")[2] for word in words] == present


def test_boundaries_stand_in_both_panels_and_part_the_columns(view):
    figure = layers_figure(view, x="tokens")
    dashed = [shape for shape in figure.layout.shapes if shape.line.dash == "dash"]
    assert {(shape.x0, shape.xref) for shape in dashed} == {(100 * 4096, "x"), (100 * 4096, "x3")}
    assert [note.text for note in figure.layout.annotations] == ["stage 2 of 2"]
    edges = np.asarray(figure.data[0].x)
    codes_LK = np.asarray(figure.data[1].z)
    assert edges[np.flatnonzero(codes_LK[5] != 3)[0]] == 100 * 4096


def test_strips_show_the_work_saved(view):
    figure = layers_figure(view)
    done = work(view.telemetry.layers)
    forward, trained = (trace for trace in figure.data if trace.type == "scatter" and trace.fill == "tozeroy")
    np.testing.assert_allclose(np.asarray(forward.y)[:-1], done.forward_LK.sum(0), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(trained.y)[:-1], done.trained_LK.sum(0), rtol=1e-5)
    assert len(forward.x) == len(forward.y) == 41
    bars = [trace for trace in figure.data if trace.type == "bar"]
    np.testing.assert_allclose(sum(np.asarray(bar.x) for bar in bars), done.forward, atol=1e-6)
    assert figure.layout.yaxis3.range == (0, 6)
    assert f"{done.share:.0%} of the work" in figure.layout.title.text


def test_every_quantity_that_was_said(view):
    assert available(view) == ["state", "ran", "keep", "grad_norm", "activation_rms"]
    norms = layers_figure(view, "grad_norm", "tokens").data[0]
    raw = np.asarray(norms.customdata)
    assert np.isnan(raw[5, 0])
    np.testing.assert_allclose(np.asarray(norms.z)[0], np.log10(raw[0]), rtol=1e-5)
    assert norms.x[0] == 5 * 4096


def test_thinning_hides_no_short_stage(root):
    from .synthetic import folder_of

    folder = folder_of(root, "short", "short stage")
    writer = TelemetryWriter(folder.telemetry)
    for step in range(1, 4001):
        writer.scalars(step, step * 0.1, step, loss=5.0)
        writer.layers(step, state=[0, 4 if step == 1777 else 3 if step < 1777 else 0], grad_norm=[1.0, None])
    writer.close()
    long = RunView.read(folder)
    z = np.asarray(layers_figure(long).data[1].z)
    assert z.shape[1] <= MOST_COLUMNS
    assert (z[1] == 4).sum() == 1
    assert np.asarray(layers_figure(long, "grad_norm").data[0].z).shape[1] <= MOST_COLUMNS


def test_wrong_and_empty(view, empty):
    with pytest.raises(ValueError, match="did you mean 'grad_norm'"):
        layers_figure(view, "gradnorm")
    assert [note.text for note in layers_figure(empty).layout.annotations] == ["nothing was measured"]
