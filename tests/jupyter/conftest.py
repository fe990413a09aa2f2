"""What the tests of feeds, tracks and views share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jupyter.live import run_folder
from workbench.store.folder import RunFolder
from workbench.telemetry.streams import TelemetryWriter


@pytest.fixture(autouse=True)
def _own_runtime(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Monitors write down their runs folders here, not where this machine's servers would find them."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path_factory.getbasetemp() / "runtime"))


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A running run that has said nothing yet."""
    return run_folder(tmp_path / "run-a", name="a <b>run</b>", budget={"amount": 100, "unit": "steps"})


@pytest.fixture
def writer(folder: RunFolder) -> Iterator[TelemetryWriter]:
    """Its telemetry, in the file almost at once."""
    writer = TelemetryWriter(folder.telemetry, flush_seconds=0.02)
    yield writer
    writer.close()
