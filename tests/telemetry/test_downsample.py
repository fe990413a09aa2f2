"""Telemetry of long runs: bounded memory, and pictures that cannot be told from those of all records."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from workbench.telemetry import downsample
from workbench.telemetry import streams as telemetry
from workbench.telemetry.streams import read_telemetry, stream_path


def write(folder: Path, stream: str, records: list[object]) -> None:
    folder.mkdir(exist_ok=True)
    lines = (record if isinstance(record, bytes) else json.dumps(record).encode() for record in records)
    stream_path(folder, stream).write_bytes(b"\n".join(lines) + b"\n")


@pytest.fixture(autouse=True)
def _everything_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "EXACT_BYTES", 0)


def test_a_long_run_keeps_its_ends_its_spikes_its_mean_and_its_last_record(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    losses = rng.normal(3.0, 0.1, 40_000)
    losses[[12_345, 30_001]] = 9.0, 0.5
    records = [{"seq": i, "step": i + 1, "seconds": i / 2, "tokens": 8 * i, "loss": x} for i, x in enumerate(losses)]
    records[-1] |= {"lr": 0.1234567890123}
    write(tmp_path, "scalars", [*records[:20_000], b"\xff damaged", *records[20_000:]])
    found = read_telemetry(tmp_path)
    steps, values = found.series("loss")
    assert len(steps) < 14_000
    assert steps == sorted(set(steps))
    assert (steps[0], steps[-1]) == (1, 40_000)
    assert (max(values), min(values)) == (9.0, 0.5)
    assert np.mean(values) == pytest.approx(losses.mean(), abs=0.005)
    assert found.scalars[-1] == records[-1], "to the last digit"
    assert read_telemetry(tmp_path, exact=True).scalars == records


def test_what_a_resumed_run_takes_again_is_forgotten(tmp_path: Path) -> None:
    first = [{"step": step, "seconds": 0.0, "tokens": 0, "loss": 1.0} for step in range(1, 101)]
    again = [{"step": step, "seconds": 0.0, "tokens": 0, "loss": 2.0} for step in range(51, 81)]
    write(tmp_path, "scalars", [*first, {"rewind": 50}, *again])
    write(tmp_path, "layers", [*({"step": r["step"], "keep": [r["loss"]]} for r in first), {"rewind": 50}])
    found = read_telemetry(tmp_path)
    assert found.series("loss") == (list(range(1, 81)), [1.0] * 50 + [2.0] * 30)
    assert [record["step"] for record in found.layers] == list(range(1, 51))


def test_layers_of_a_long_run_are_evenly_spread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downsample, "LAYER_RECORDS", 100)
    write(tmp_path, "layers", [{"step": step, "keep": [1.0]} for step in range(1, 3_001)])
    steps = [record["step"] for record in read_telemetry(tmp_path).layers]
    assert 100 <= len(steps) <= 200
    assert len(set(np.diff(steps))) == 1


@pytest.mark.parametrize("stream", ["scalars", "layers"])
def test_a_piece_of_nothing_but_damage_hides_nothing(tmp_path: Path, stream: str) -> None:
    damage = [b"x" * 1000] * 7_000
    write(tmp_path, stream, [{"step": 1, "loss": 1.0}, *damage, {"step": 2, "loss": 1.0}])
    found = read_telemetry(tmp_path)
    assert [record["step"] for record in getattr(found, stream)] == [1, 2]


@pytest.mark.process
def test_memory_grows_by_less_than_half_of_the_file(tmp_path: Path) -> None:
    """As dicts it was almost seven times the file: 5.8 GB for 863 MB."""
    names = [f"name_{place}" for place in range(20)]
    line = ",".join(f'"{name}":0.{place}23456' for place, name in enumerate(names))
    script = (
        "import sys; from pathlib import Path; from tests.peak_memory import peak_mib; "
        "from workbench.telemetry import streams as telemetry; "
        "import workbench.telemetry.downsample; telemetry.EXACT_BYTES = 0; "
        "telemetry.read_telemetry(Path(sys.argv[1])); "
        "print(peak_mib())"
    )
    peaks, sizes = [], []
    for count in (60_000, 180_000):
        folder = tmp_path / str(count)
        folder.mkdir()
        with stream_path(folder, "scalars").open("w") as file:
            file.writelines(f'{{"step":{step},"seconds":1.5,"tokens":{step},{line}}}\n' for step in range(count))
        command = [sys.executable, "-c", script, str(folder)]
        peaks.append(2**20 * float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
        sizes.append(stream_path(folder, "scalars").stat().st_size)
    assert peaks[1] - peaks[0] < (sizes[1] - sizes[0]) / 2
