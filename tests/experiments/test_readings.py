"""Runs of an experiment, read from their folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiments.sweep.conftest import finish
from workbench.experiments import readings
from workbench.experiments.readings import reading_of
from workbench.store.folder import RunFolder


def test_a_run_that_has_finished_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, read = RunFolder(tmp_path / "a-run"), []
    read_evaluations = readings.read_evaluations
    monkeypatch.setattr(readings, "read_evaluations", lambda path: read.append(path) or read_evaluations(path))
    finish(folder, 2.0)
    assert [reading_of(folder, {}).loss for _ in range(3)] == [2.0] * 3
    assert read == [folder]
    finish(folder, 1.5)
    assert reading_of(folder, {}).loss == 1.5, "another one stands in its place"
