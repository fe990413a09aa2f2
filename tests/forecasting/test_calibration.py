"""Calibration: plausible numbers, remembered by machine and mode, measured again when the file is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.forecasting.machine_rates import RATES
from workbench.choices.choice import registry
from workbench.forecasting import calibration
from workbench.forecasting.calibration import calibrated
from workbench.forecasting.rates import Mode, Rates

MODE = Mode("cpu", 1, "fp32", False)


@pytest.fixture
def measurements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Mode]:
    """Modes that were measured, each in no time; the cache is empty."""
    asked: list[Mode] = []

    def quick(mode: Mode) -> Rates:
        asked.append(mode)
        return RATES

    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(calibration, "measured", quick)
    return asked


def test_measured_once_per_mode(measurements: list[Mode]) -> None:
    assert calibrated(MODE) == calibrated(MODE) == RATES
    calibrated(MODE._replace(threads=2))
    calibrated(MODE._replace(precision="bf16"))
    assert measurements == [MODE, MODE._replace(threads=2), MODE._replace(precision="bf16")]


@pytest.mark.parametrize("damage", ["", "{", '{"key": 1}', "[]", None])
def test_a_damaged_file_is_measured_again(measurements: list[Mode], tmp_path: Path, damage: str | None) -> None:
    calibrated(MODE)
    (file,) = (tmp_path / "forecast").glob("*.json")
    if damage is None:
        # The right key over rates that are none.
        record = json.loads(file.read_text())
        record["rates"]["call"] = "quick"
        damage = json.dumps(record)
    file.write_text(damage)
    assert calibrated(MODE) == RATES
    assert len(measurements) == 2
    assert calibrated(MODE) == RATES
    assert len(measurements) == 2


def test_another_torch_measures_again(measurements: list[Mode], monkeypatch: pytest.MonkeyPatch) -> None:
    calibrated(MODE)
    monkeypatch.setattr(torch, "__version__", "99.0")
    calibrated(MODE)
    assert len(measurements) == 2


def test_new_pages_cost_something_plausible() -> None:
    assert 0 <= calibration._page(torch.device("cpu")) < 1e-8
    assert calibration._page(torch.device("cuda")) == 0.0


def test_gradients_are_read_at_a_plausible_rate() -> None:
    assert 1e8 < calibration._moved(torch.device("cpu")) < 1e13


@pytest.mark.parametrize("kind", sorted(registry("optimizer")))
def test_every_optimizer_can_be_measured(kind: str) -> None:
    found = calibration._optimizer(kind, torch.device("cpu"))
    assert all(seconds > 0 for _, seconds in found.matrix)
    assert found.embedding > 0
    assert found.vector > 0


def test_an_optimizer_too_dear_for_one_side_is_not_measured_on_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "DEAR_SECONDS", 0.0)
    assert len(calibration._optimizer("adamw", torch.device("cpu")).matrix) == 1


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
def test_a_machine_is_measured_in_a_process_of_its_own(compiled: bool) -> None:
    rates = calibration.measured(MODE._replace(compiled=compiled))
    assert set(rates.optimizers) == set(registry("optimizer"))
    assert all(0.3 <= factor <= 3 for factor in rates.factors)
    assert {"cheap", "costly", "product", "attention", "mm 32 nt", "mm 32 nn", "mm 32 tn"} <= rates.kernels.keys()
    assert rates.memory_bytes > 1 << 28
    assert rates.reference > 0
    assert (rates.fused is not None) == compiled
