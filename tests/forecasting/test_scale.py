"""Forecasts for many devices: the formula by hand, what cannot be shared, and published results."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.forecasting.machine_rates import RATES
from workbench import presets
from workbench.base.errors import WorkbenchError
from workbench.cli.command import main
from workbench.forecasting import calibration
from workbench.forecasting.forecast import forecast
from workbench.forecasting.scale import Cluster, more_samples, scaled, step_on
from workbench.recipes.recipe import Recipe


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return presets.fast().with_(execution={"device": "cpu", "compile": False}, budget="200 steps")


def test_sending_by_hand() -> None:
    cluster = Cluster(per_node=4, inside=10, between=1, latency=100)
    assert cluster.sending(1, 1e9) == 0
    assert cluster.sending(2, 1e9) == pytest.approx(0.1)
    assert cluster.sending(4, 1e9) == pytest.approx(0.15)
    # Four nodes: a quarter of the payload for each device, 3/4 of it twice, and two levels there and back.
    assert cluster.sending(16, 1e9) == pytest.approx(0.15 + 2 * 0.75 * 0.25 + 4e-4)


def test_what_hides_behind_the_backward_pass() -> None:
    cluster = Cluster(per_node=2, inside=1, overlap=1.0)
    assert step_on(2, 8, 1.0, 0.5, 1e9, cluster) == (4.0, 0.5, 0.0)
    assert step_on(2, 2, 0.3, 0.5, 1e9, cluster) == (0.3, 0.5, pytest.approx(1 - 0.2))


def test_one_device_is_the_forecast(recipe: Recipe) -> None:
    one, two, many = scaled(recipe, [1, 2, 16], rates=RATES)
    alone = forecast(recipe, rates=RATES)
    assert one.step == pytest.approx(alone.seconds / alone.steps, rel=0.03)
    assert one.seconds == pytest.approx(alone.seconds, rel=0.05)
    assert one.waiting == 0 < two.waiting
    assert two.computing == pytest.approx(one.computing / 2)
    assert many.fixed == one.fixed
    assert one.step / 2 < two.step < one.step


def test_samples_grow_with_the_batch(recipe: Recipe) -> None:
    rows = recipe.data.most_rows
    one, four = scaled(recipe, [1, 4], weak=True, critical=8 * rows, rates=RATES)
    assert four.rows == one.rows == rows
    assert four.samples / one.samples == pytest.approx(more_samples(4 * rows, 8 * rows) / more_samples(rows, 8 * rows))
    assert more_samples(100, math.inf) == 1


@pytest.mark.parametrize("devices", [0, 10**6])
def test_devices_without_rows_are_refused(recipe: Recipe, devices: int) -> None:
    with pytest.raises(
        WorkbenchError,
        match="is none; use 1" if devices < 1 else f"{devices} devices cannot share 16 rows; use 1..16, or weak",
    ):
        scaled(recipe, [devices], rates=RATES)


def test_the_command_prints_a_row_for_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(calibration, "measured", lambda mode, poll=None: RATES)
    small = ["forecast", "--preset", "fast", "--set", "execution.compile=false", "--set", "execution.device=cpu"]
    assert main([*small, "--devices", "1,2", "--links", "1,1,2", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [each["devices"] for each in printed["devices"]] == [1, 2]
    assert main([*small, "--devices", "1,2"]) == 0
    assert "1.00x" in capsys.readouterr().out
    assert main([*small, "--devices", "two"]) != 0
    assert "--devices takes whole numbers, such as 1,2,8, got 'two'" in capsys.readouterr().err
