"""Numbers of a step on their way to telemetry: all losses looked at, rates between records, bad ones named."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from workbench.choices.progress import Budget, Progress
from workbench.telemetry.streams import TelemetryWriter, read_telemetry
from workbench.training.measurements import StepTimes
from workbench.training.recorder import RECENT, NotFinite, Recorder, StepRecord

CPU = torch.device("cpu")


def progress(step: int) -> Progress:
    """After ``step`` steps of 100 tokens and half a second each."""
    return Progress(step, 100 * step, 0.5 * step, Budget())


def record(step: int, loss: float, flops: float = 1e6) -> StepRecord:
    return StepRecord(
        progress=progress(step), loss=torch.tensor(loss), metrics={"accuracy": torch.tensor(0.25)}, grad_norm=None,
        knobs={"lr": 0.1}, times=StepTimes(CPU), layers=None, layers_run=2.0, useful_flops=flops,
    )  # fmt: skip


def test_rates_are_taken_between_records(tmp_path: Path) -> None:
    writer = TelemetryWriter(tmp_path)
    recorder = Recorder(writer, CPU, scalars_every=3, layers_every=10, progress=progress(0), peak_flops=1e7)
    for step in range(1, 8):
        recorder.take(record(step, 1.0 / step))
        recorder.spent_seconds += 0.002
    writer.close()
    written = read_telemetry(tmp_path)
    assert [line["step"] for line in written.scalars] == [1, 4, 7]
    assert written.series("tokens_per_second")[1] == pytest.approx([200.0] * 3)
    # A million useful FLOPs each half second, of ten million a second.
    assert written.series("mfu")[1] == pytest.approx([0.2] * 3)
    assert written.series("loss")[1] == pytest.approx([1.0, 0.25, 1 / 7], rel=1e-5)
    assert list(recorder.recent) == pytest.approx([1.0 / step for step in range(1, 8)]), "also of unwritten steps"
    assert recorder.useful_flops == 7e6
    assert written.series("flops")[1] == [1e6, 4e6, 7e6], "counted up"
    # Of the first record nothing is known yet; then two milliseconds a step.
    assert written.series("telemetry_ms")[1] == pytest.approx([0.0, 2.0, 2.0])


def test_no_peak_no_mfu(tmp_path: Path) -> None:
    writer = TelemetryWriter(tmp_path)
    Recorder(writer, CPU, 1, 10, progress(0)).take(record(1, 1.0))
    writer.close()
    assert "mfu" not in read_telemetry(tmp_path).scalars[0]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_bad_loss_between_records_is_named_by_its_own_step(bad: float) -> None:
    recorder = Recorder(None, CPU, scalars_every=4, layers_every=4, progress=progress(0))
    recorder.take(record(1, 2.0))
    recorder.take(record(2, 2.0))
    recorder.take(record(3, bad))
    recorder.take(record(4, 2.0))
    with pytest.raises(NotFinite, match=r"at step 3; lower optimizer\.lr"):
        recorder.take(record(5, 2.0))


def test_settling_reads_what_no_record_has() -> None:
    recorder = Recorder(None, CPU, 1 << 30, 1 << 30, progress(1))
    recorder.take(record(2, 3.0))
    recorder.take(record(3, 2.5))
    assert math.isnan(recorder.loss)
    recorder.settle()
    assert (recorder.loss, list(recorder.recent)) == (2.5, [3.0, 2.5])
    recorder.settle()
    assert list(recorder.recent) == [3.0, 2.5], "twice is not counted twice"


def test_only_recent_losses_are_kept() -> None:
    recorder = Recorder(None, CPU, 1, 1, progress(0))
    for step in range(1, RECENT + 11):
        recorder.take(record(step, float(step)))
    assert list(recorder.recent) == [float(step) for step in range(11, RECENT + 11)]


def test_layers_are_measured_only_where_they_can_be_written(tmp_path: Path) -> None:
    assert not Recorder(None, CPU, 1, 1, progress(0)).wants_layers(progress(0))
    writer = TelemetryWriter(tmp_path)
    recorder = Recorder(writer, CPU, 1, 5, progress(0))
    writer.close()
    assert [step for step in range(11) if recorder.wants_layers(progress(step))] == [0, 5, 10]
    # The last one too, so that the picture reaches the end; a budget in seconds does not tell it before.
    for unit, measured in (("steps", [0, 5, 8]), ("seconds", [0, 5])):
        budget = Budget(amount=9, unit=unit)
        assert [n for n in range(9) if recorder.wants_layers(replace(progress(n), budget=budget))] == measured
