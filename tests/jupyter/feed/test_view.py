"""Runs as pictures want them: exact while they are short, downsampled when they are long."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.jupyter.live import run_folder
from workbench.jupyter.feed.track import Track
from workbench.jupyter.feed.view import view_of
from workbench.plots.activity import work
from workbench.plots.curves import curve
from workbench.store.folder import RunFolder
from workbench.telemetry import downsample
from workbench.telemetry import streams as telemetry
from workbench.telemetry.streams import TelemetryWriter


@pytest.fixture
def long_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.setattr(telemetry, "EXACT_BYTES", 1000)
    monkeypatch.setattr(downsample, "EVENLY", 200)
    monkeypatch.setattr(downsample, "SPIKES", 20)
    folder = run_folder(tmp_path / "run-a", name="long")
    writer = TelemetryWriter(folder.telemetry, flush_seconds=60)
    for step in range(1, 5001):
        spike = 50.0 if step == 3333 else 5.0
        writer.scalars(step, step / 2, step * 10, loss=spike, lr=1e-3, flops=step * 1e9)
        if step % 100 == 0:
            writer.layers(step, state=[0, 1], keep=[1.0, None])
        if step % 1000 == 0:
            writer.scalars(step, step / 2, step * 10, heldout_loss=4.5)
            writer.event(step, "evaluation", "held-out loss")
    writer.close()
    return folder


@pytest.mark.parametrize("read_before", [False, True])
def test_a_long_run_is_downsampled_and_loses_no_spike(long_run: RunFolder, read_before: bool) -> None:
    track = Track(long_run)
    if read_before:
        track.poll()
    made = view_of(long_run, track)
    loss = curve(made, "loss")
    assert len(loss) < 400
    assert loss.y_N.max() == 50.0
    assert (loss.x_N[0], loss.x_N[-1]) == (1, 5000)
    assert curve(made, "heldout_loss", "flops").x_N.tolist() == [k * 1e12 for k in range(1, 6)]
    assert len(made.telemetry.events) == 5
    assert made.name == "long"
    np.testing.assert_allclose(work(made.telemetry.layers).forward, [1.0, 0.0])


def test_a_short_run_is_read_as_it_is(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run-b", name="short")
    writer = TelemetryWriter(folder.telemetry)
    writer.scalars(1, 1, 1, loss=2.0)
    writer.close()
    assert view_of(folder).telemetry.scalars[0]["seq"] == 0
    assert view_of(run_folder(tmp_path / "run-c", name="silent")).telemetry.scalars == []
