"""A process that writes telemetry as a trainer does, and when it did: ``python -m tests.browser.page_writer``."""

from __future__ import annotations

import json
import math
import random
import sys
import time
from pathlib import Path
from typing import Any

from workbench.store.folder import RunFolder, write_json
from workbench.store.state import take_lock, write_state
from workbench.telemetry.streams import TelemetryWriter, stream_path

LAYERS = 12
RECORDS_PER_SECOND = 10.0
_LAYERS_EVERY = 10


def values_at(step: int, rng: random.Random) -> dict[str, float]:
    """Scalars of one step, under the names and with the digits that a trainer writes."""
    noise = rng.random()
    values = {
        "loss": 4.0 + 6.0 * math.exp(-step / 2000) + 0.3 * noise, "accuracy": 0.3 + 0.1 * noise, "grad_norm": 1 + noise,
        "lr": 1e-3 / (1 + step / 1e4), "objective.mask_rate": 0.15 + 0.01 * noise, "data_ms": 2 + noise,
        "forward_ms": 90 + noise, "backward_ms": 160 + noise, "optimizer_ms": 20 + noise, "step_ms": 272 + noise,
        "telemetry_ms": 1 + noise, "tokens_per_second": 15_000 + 900 * noise, "layers_run": 11.0 + noise,
        "mfu": 0.2 + 0.02 * noise,
    }  # fmt: skip
    return {name: float(f"{value:.6g}") for name, value in values.items()}


def vectors_at(rng: random.Random) -> dict[str, list[float]]:
    """One record of the layers."""
    names = ("ran", "keep", "scale", "grad_norm", "update_ratio", "activation_rms")
    vectors = {name: [float(f"{rng.random():.6g}") for _ in range(LAYERS)] for name in names}
    return {"state": [int(rng.random() < 0.2) for _ in range(LAYERS)], **vectors}


def long_history(folder: RunFolder, records: int) -> None:
    """The scalars and layers of a run that has recorded ``records`` steps, in the lines that a trainer writes."""
    rng = random.Random(0)
    folder.telemetry.mkdir(parents=True, exist_ok=True)
    # A thousand different endings: formatting a million of them would take longer than the measurement.
    ends = [json.dumps(values_at(step, rng), separators=(",", ":"))[1:].encode() for step in range(1000)]
    with stream_path(folder.telemetry, "scalars").open("wb") as file:
        for step in range(1, records + 1):
            clock = b'{"seq":%d,"step":%d,"seconds":%d.25,"tokens":%d,"flops":%d,'
            numbers = (step - 1, step, step // 4, 4096 * step, 310_000_000_000 * step)
            file.write(clock % numbers + ends[step * 7 % 1000] + b"\n")
    with stream_path(folder.telemetry, "layers").open("wb") as file:
        for place, step in enumerate(range(100, records + 1, max(100, records // 2000))):
            record = {"seq": place, "step": step, **vectors_at(rng)}
            file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")


def write(folder: RunFolder, log: Path, first: int, seconds: float) -> None:
    """Ten records a second; ``log`` gets ``[step, time it was handed over]`` for each."""
    take_lock(folder)
    writer, rng = TelemetryWriter(folder.telemetry), random.Random(first)
    began, step = time.monotonic(), first
    with log.open("w", encoding="utf-8") as out:
        while time.monotonic() - began < seconds:
            step += 1
            if step % 5 == 0:
                write_state(folder, durable=False, **_state(step))
            at = time.time()
            writer.scalars(step, step / 4, 4096 * step, flops=3.1e11 * step, **values_at(step, rng))
            if step % _LAYERS_EVERY == 0:
                writer.layers(step, **vectors_at(rng))
            out.write(f"[{step}, {at}]\n")
            out.flush()
            time.sleep(max(0.0, began + (step - first) / RECORDS_PER_SECOND - time.monotonic()))
    writer.close()
    write_state(folder, **_state(step) | {"status": "stopped"})


def prepare(folder: RunFolder, name: str, records: int) -> None:
    """A run that has recorded this much and is about to go on."""
    folder.path.mkdir(parents=True)
    write_json(folder.recipe, {"name": name, "budget": {"amount": 2_000_000, "unit": "steps"}})
    score = {"kind": "masked-only", "version": 2}
    write_json(folder.environment, {"unigram_entropy": 6.59, "bigram_entropy": 4.2, "score": score})
    if records:
        long_history(folder, records)
    write_state(folder, **_state(records))


def _state(step: int) -> dict[str, Any]:
    state = {"step": step, "progress": step / 2e6, "tokens": 4096 * step, "seconds": step / 4}
    return {"status": "running", "heartbeat": time.time(), **state, "loss": 4.0, "tokens_per_second": 15_000.0}


if __name__ == "__main__":
    write(RunFolder(Path(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
