"""The writer of the page's benchmark: what it writes is what a reader of runs takes for a run."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np

from tests.browser.page_times import _delays
from tests.browser.page_writer import LAYERS, prepare, write
from workbench.jupyter.feed.track import Track
from workbench.store.folder import RunFolder
from workbench.store.state import read_state


def test_a_history_and_its_continuation_are_one_run(tmp_path: Path) -> None:
    folder, log = RunFolder(tmp_path / "run"), tmp_path / "run.log"
    prepare(folder, "a run", 500)
    thread = threading.Thread(target=write, args=(folder, log, 500, 0.5))
    thread.start()
    thread.join(30)
    track = Track(folder)
    track.poll()
    steps = [json.loads(line)[0] for line in log.read_text().splitlines()]
    assert track.steps.tolist() == list(range(1, 501 + len(steps)))
    assert steps[0] == 501
    assert {"loss", "mfu", "lr", "data_ms", "telemetry_ms"} <= set(track.columns.names)
    assert np.isfinite(track.columns.clock("flops")).all()
    assert track.layers == LAYERS
    assert (track.name, read_state(folder).status) == ("a run", "stopped")


def test_a_delay_ends_with_the_first_frame_that_had_the_sample(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("[1, 10.0]\n[2, 10.1]\n[3, 10.2]\n[4, 10.3]\n[5, 10.4]\n[6, 10")
    seen = [["train · a", 1, 10_050.0], ["train · a", 3, 10_350.0], ["train · a", 4, 10_400.0]]
    np.testing.assert_allclose(_delays(log, seen), [250.0, 150.0, 100.0])
    assert len(_delays(log, [])) == 0
