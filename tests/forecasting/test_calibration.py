"""Calibration: plausible numbers, remembered by machine and mode, measured again when the file is damaged."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from tests.forecasting.machine_rates import RATES
from workbench.base.cache_folder import cache_folder
from workbench.choices.choice import registry
from workbench.choices.execution import Mode
from workbench.forecasting import calibration, kernel_rates
from workbench.forecasting.calibration import calibrated
from workbench.forecasting.rates import Rates
from workbench.ops import remembered
from workbench.ops.remembered import FOLDER, remember
from workbench.ops.timing import measure
from workbench.training.machine import product_benchmark

MODE = Mode("cpu", 1, "fp32", False)


@pytest.fixture
def measurements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Mode]:
    """Modes that were measured, each in no time; the cache is empty."""
    asked: list[Mode] = []

    def quick(mode: Mode, poll: object = None) -> Rates:
        asked.append(mode)
        return RATES

    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(calibration, "measured", quick)
    return asked


def test_measured_once_per_mode(measurements: list[Mode]) -> None:
    assert calibrated(MODE) == calibrated(MODE) == RATES
    calibrated(MODE._replace(threads=2))
    calibrated(MODE._replace(precision="bf16"))
    # Kernels are timed one by one, also for recipes that are compiled.
    calibrated(MODE._replace(compiled=True))
    assert measurements == [MODE, MODE._replace(threads=2), MODE._replace(precision="bf16")]


def test_whoever_comes_meanwhile_waits_and_takes_what_was_measured(
    measurements: list[Mode], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two kernels that open a Lab on a new machine: at once, they would measure each other."""
    quick, within, said = calibration.measured, threading.Event(), list[str]()

    def slow(mode: Mode, poll: object = None) -> Rates:
        assert not within.is_set(), "two measurements at once"
        within.set()
        time.sleep(0.6)
        within.clear()
        return quick(mode, poll)

    def leave() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(calibration, "measured", slow)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(calibrated, MODE)
        assert within.wait(30)
        others = [pool.submit(calibrated, mode, said.append) for mode in (MODE, MODE._replace(threads=2))]
        with pytest.raises(KeyboardInterrupt):
            calibrated(MODE, poll=leave)
        assert first.result() == RATES
        assert [other.result() for other in others] == [RATES, RATES]
    assert sorted(measurements) == [MODE, MODE._replace(threads=2)]
    assert said.count("waiting for another process that measures this machine") == 2


@pytest.mark.parametrize("damage", ["", "{", '{"subject": 1}', "[]", None])
def test_a_damaged_file_is_measured_again(measurements: list[Mode], tmp_path: Path, damage: str | None) -> None:
    calibrated(MODE)
    (file,) = (tmp_path / FOLDER).glob("forecast-*.json")
    if damage is None:
        # The right subject over rates that are none.
        record = json.loads(file.read_text())
        record["value"]["page"] = "quick"
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


def _product(seconds: float) -> None:
    subject = product_benchmark(MODE).subject
    remember(cache_folder() / FOLDER, "product", subject, {"product": seconds}, 0.0)


def test_rates_from_a_slow_moment_are_measured_again_once_a_run_has_seen_more(
    measurements: list[Mode], monkeypatch: pytest.MonkeyPatch
) -> None:
    sittings = iter([0.020, 0.019, 0.010])

    def sitting(mode: Mode, poll: object = None) -> Rates:
        measurements.append(mode)
        return RATES.model_copy(update={"product": next(sittings)})

    monkeypatch.setattr(calibration, "measured", sitting)
    said: list[str] = []
    calibrated(MODE, said.append)
    _product(0.017)
    assert calibrated(MODE, said.append).product == 0.020, "a difference that noise can make"
    _product(0.010)
    assert calibrated(MODE, said.append).product == 0.020, "the slow moment may last"
    monkeypatch.setattr(calibration, "RETRY_SECONDS", -1.0)
    assert calibrated(MODE, said.append).product == 0.019
    assert calibrated(MODE, said.append).product == 0.010
    assert calibrated(MODE, said.append).product == 0.010
    assert said == [
        "measuring this machine, once for runs of this precision on as many threads: about 20 s, longer where "
        "others work",
        "measuring this machine again, which was slow when it was measured: the matrix product took 10 ms, and 20 ms "
        "was remembered",
        "measuring this machine again, which was slow when it was measured: the matrix product took 10 ms, and 19 ms "
        "was remembered",
    ]
    _product(0.100)
    assert calibrated(MODE).product == 0.010, "a product measured in a slow moment says nothing"


@pytest.fixture
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every measurement takes three rounds."""
    quick = {"least_seconds": 0.0, "limit_seconds": 0.0}
    for module in (calibration, kernel_rates, remembered):
        monkeypatch.setattr(module, "measure", lambda samples, **rest: measure(samples, **{**rest, **quick}))


@pytest.mark.usefixtures("few_rounds")
def test_every_optimizer_is_measured_and_one_too_dear_for_a_side_not_on_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calibration, "SIDES", (8, 16))
    monkeypatch.setattr(calibration, "TABLE", (64, 8))
    found = calibration._optimizers(sorted(registry("optimizer")), torch.device("cpu"))
    assert set(found) == set(registry("optimizer"))
    for rates in found.values():
        assert [side for side, _ in rates.matrix] == [8, 16]
        assert min(seconds for _, seconds in rates.matrix) > 0
        assert min(rates.embedding, rates.vector) > 0
    monkeypatch.setattr(calibration, "DEAR_SECONDS", 0.0)
    assert len(calibration._optimizers(["adamw"], torch.device("cpu"))["adamw"].matrix) == 1


@pytest.mark.usefixtures("few_rounds")
def test_an_interrupted_measurement_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    for name, value in {"SIDES": (8,), "TABLE": (64, 8), "LENGTHS": (16,)}.items():
        monkeypatch.setattr(calibration, name, value)
    done: list[str] = []

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def work(*arguments: Any) -> Any:
            done.append(name)
            return real(*arguments)

        return work

    # The kernels alone would take seconds.
    monkeypatch.setattr(calibration, "kernel_rates", counted("kernels", lambda mode: (RATES.kernels, 0.01)))
    monkeypatch.setattr(calibration, "_steps", counted("optimizers", calibration._steps))
    real = calibration._memory

    def interrupted(device: torch.device) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(calibration, "_memory", interrupted)
    subject = calibration._subject(MODE)
    with pytest.raises(KeyboardInterrupt):
        calibration.rates_here(MODE, subject)
    begun = list(done)
    assert set(begun) == {"kernels", "optimizers"}
    monkeypatch.setattr(calibration, "_memory", real)
    rates = calibration.rates_here(MODE, subject)
    assert done == begun, "nothing that was measured is measured again"
    assert (rates.kernels, set(rates.optimizers)) == (RATES.kernels, set(registry("optimizer")))
    # What is older was perhaps measured in the very moment that made it necessary to measure again.
    monkeypatch.setattr(calibration, "RETRY_SECONDS", -1.0)
    calibration.rates_here(MODE, subject)
    assert done == begun * 2


@pytest.mark.extended
@pytest.mark.xdist_group("machine")
def test_a_machine_is_measured_in_a_process_of_its_own(measured_machine: Rates) -> None:
    rates = measured_machine
    assert set(rates.optimizers) == set(registry("optimizer"))
    assert {"other", "product", "attention", "mm 32 nt", "mm 32 nn", "mm 32 tn"} <= rates.kernels.keys()
    assert rates.memory_bytes > 1 << 28
    assert rates.product > 0
    assert 0 <= rates.disagreement < 3


@pytest.mark.process
def test_a_measurement_that_nobody_waits_for_ends_with_its_process() -> None:
    before, begun = psutil.Process().children(), list[psutil.Process]()

    def poll() -> None:
        begun.extend(child for child in psutil.Process().children() if child not in before)
        # As Ctrl-C does; what was measured until then is kept (see above).
        if begun:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calibration.measured(MODE, poll)
    assert not any(child.is_running() for child in begun)
