"""The layer picture."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.plots.layers import available, layers_figure
from workbench.plots.palette import STATE_WORDS


def test_states_in_words_and_places(view):
    heat = layers_figure(view).data[0]
    z = np.asarray(heat.z)
    assert z.shape == (6, 40)
    assert list(heat.colorbar.ticktext) == list(STATE_WORDS)
    assert (z[3:, 0] == 3).all()  # not yet grown
    assert (z[0, -1]) == 2  # frozen
    assert heat.text[5][0] == "not yet grown"
    assert heat.text[0][-1] == "frozen"
    for record, column in zip(view.telemetry.layers, z.T, strict=True):
        assert record["state"] == column.tolist()


def test_every_quantity_that_was_said(view):
    assert available(view) == ["state", "ran", "keep", "grad_norm", "activation_rms"]
    norms = layers_figure(view, "grad_norm", "tokens").data[0]
    raw = np.asarray(norms.customdata)
    assert np.isnan(raw[5, 0])
    np.testing.assert_allclose(np.asarray(norms.z)[0], np.log10(raw[0]), rtol=1e-5)
    assert norms.x[0] == 5 * 4096


def test_many_columns_are_thinned(root):
    from .synthetic import trained

    long = trained(root, "long", "long", steps=4000, layers=3)
    assert np.asarray(layers_figure(long).data[0].z).shape == (3, 400)


def test_wrong_and_empty(view, empty):
    with pytest.raises(ValueError, match="did you mean 'grad_norm'"):
        layers_figure(view, "gradnorm")
    assert [note.text for note in layers_figure(empty).layout.annotations] == ["nothing was measured"]
