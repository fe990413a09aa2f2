"""A run folder as a trainer leaves it: 20 steps, of which the last five were repeated after a restart."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench.store.folder import RunFolder, write_json
from workbench.store.state import process_identity, take_lock, write_state
from workbench.telemetry.streams import TelemetryWriter

RECIPE = {"name": "Tiny <1>", "optimizer": {"kind": "lans", "lr": 0.001}, "data": {"paths": ["a", "b"]}, "seed": 3}
BEGAN = 1_795_879_952.0


class Recorded:
    """A run folder that can grow; it is running until :meth:`finish`."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True)
        self.folder = RunFolder(path)
        write_json(self.folder.recipe, RECIPE)
        write_state(self.folder, status="running", started=BEGAN, **process_identity())
        self.lock: int | None = take_lock(self.folder)

    def steps(self, first: int, last: int, shift: float = 0.0, rewind: int | None = None) -> None:
        """Write these steps; the loss is 9 - step / 10 + shift, not a number at step 7."""
        writer = TelemetryWriter(self.folder.telemetry, flush_seconds=None)
        if rewind is not None:
            writer.rewind(rewind)
        for step in range(first, last + 1):
            loss = math.nan if step == 7 else 9 - step / 10 + shift
            if step % 5 == 0:
                writer.layers(step, grad_norm=[0.5, None, step / 4])
            writer.scalars(step, 0.5 * step, 256 * step, loss=loss, flops=1e6 * step, mfu=None)
            if step % 10 == 0:
                writer.scalars(step, 0.5 * step + 0.1, 256 * step, heldout_loss=8.5 - step / 20 + shift)
        writer.event(last, "checkpoint", f"saved step-{last}")
        writer.close()

    def finish(self) -> None:
        """End it, scored on one benchmark."""
        score = {"value": 0.625, "unit": "accuracy", "count": 8, "better": "higher"}
        write_json(self.folder.scores, {"schema": 1, "points": [{"step": 20, "scores": {"blimp": score}}]})
        write_state(self.folder, status="finished", step=20, seconds=10.0)
        assert self.lock is not None
        os.close(self.lock)
        self.lock = None


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorded]:
    """A run that recorded 12 steps, went back to step 10 and recorded five more; then it goes on."""
    run = Recorded(tmp_path / "runs" / "20261128-000000-tiny-1-000000-0000")
    run.steps(1, 12, shift=1.0)
    run.steps(11, 15, rewind=10)
    yield run
    if run.lock is not None:
        run.finish()


def loss_at(step: int) -> float:
    """The loss that counts in the end."""
    return 9 - step / 10 + (1.0 if step <= 10 else 0.0)


def inspected(log: Path, *options: str) -> str:
    """An offline run as W&B's own reader prints it."""
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", *options, str(log)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def keep_trackio_in(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Another folder of trackio, which is fixed by the first import in a process."""
    patch.setenv("TRACKIO_DIR", str(folder))
    for name in [each for each in sys.modules if each.split(".")[0] == "trackio"]:
        patch.delitem(sys.modules, name)
