"""What page and Python compute from the same numbers: one smoothing, one range, one line per run."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench.jupyter
from workbench.plots.curves import Curve, smooth
from workbench.plots.levels import robust_range
from workbench.plots.palette import places
from workbench.telemetry.quantities import run_colour, run_dash

pytestmark = [pytest.mark.process, pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")]
SOURCES = Path(workbench.jupyter.__file__).parent / "frontend" / "src"
IDS, HELD = ["d", "b", "a", "e"], {"a": 2, "b": 0, "c": 1}
_SCRIPT = """
import { readFileSync } from "node:fs";
import { markOf, placesOf } from "./palette.js";
import { robustRange } from "./watch/scales.js";
import { smoothed } from "./watch/views/pictures.js";
const numbers = (values) => Float64Array.from(values, (value) => value ?? NaN);
const { losses, steps, share, ids, held } = JSON.parse(readFileSync(0, "utf8"));
const lines = losses.map((values) => ({ steps: numbers(steps), y: numbers(values) }));
console.log(JSON.stringify({
  smooth: lines.map((line) => [...smoothed(line, share)]),
  rate: lines.map((line) => [...smoothed({ ...line, y: line.y.slice() }, share, true)]),
  ranges: lines.map(({ y }) => [robustRange(y), robustRange(y, true)]),
  marks: Array.from({ length: 20 }, (_, i) => markOf(i)),
  places: placesOf(ids, held),
}));
"""


@pytest.fixture(scope="module")
def given() -> dict[str, Any]:
    """Losses of 3,000 records with gaps, spikes and a divergence, at steps not evenly apart; one knows five values."""
    rng = np.random.default_rng(7)
    steps = np.cumsum(rng.integers(1, 5, 3000)).astype(float)
    falls = 6 + 3 / (1 + np.arange(3000) / 90) + 0.1 * rng.standard_normal(3000)
    spiked, diverged = falls.copy(), falls.copy()
    spiked[[40, 900, 2999]] = 14.6, 0.01, 12.0
    spiked[500:510] = np.nan
    diverged[2900:] = 14.0
    few = np.full(3000, np.nan)
    few[:5] = 7.1, 6.9, 14.6, 6.8, 6.7
    return {"steps": steps, "losses": [falls, spiked, diverged, few], "share": 0.012}


@pytest.fixture(scope="module")
def page(given: dict[str, Any]) -> dict[str, Any]:
    """Return what the page's functions make of it."""
    losses = [[None if np.isnan(value) else value for value in loss.tolist()] for loss in given["losses"]]
    question = {"steps": given["steps"].tolist(), "losses": losses, "share": 0.012, "ids": IDS, "held": HELD}
    command = ["node", "--input-type=module", "--eval", _SCRIPT]
    done = subprocess.run(command, cwd=SOURCES, input=json.dumps(question), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_curves_are_smoothed_alike(given: dict[str, Any], page: dict[str, Any]) -> None:
    for loss, smoothed, rate in zip(given["losses"], page["smooth"], page["rate"], strict=True):
        line = Curve(given["steps"], loss)
        np.testing.assert_allclose(smooth(line).y_N, smoothed, rtol=1e-9)
        np.testing.assert_allclose(smooth(line, rate=True).y_N, rate, rtol=1e-9)


def test_axes_have_the_same_range(given: dict[str, Any], page: dict[str, Any]) -> None:
    for loss, (linear, logarithmic) in zip(given["losses"], page["ranges"], strict=True):
        assert robust_range(loss) == pytest.approx(linear, rel=1e-12)
        assert robust_range(loss, log=True) == pytest.approx(logarithmic, rel=1e-12)


def test_runs_have_the_same_colours_dashes_and_places(page: dict[str, Any]) -> None:
    assert [mark["stroke"] for mark in page["marks"]] == [run_colour(place) for place in range(20)]
    assert [tuple(mark["dash"]) for mark in page["marks"]] == [run_dash(place) for place in range(20)]
    assert page["places"] == places(IDS, HELD)
