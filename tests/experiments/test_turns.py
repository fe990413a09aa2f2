"""How many runs of an experiment train at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.experiments.validation import at_once
from workbench.launchers.queue.queue_folder import OFF, QUEUE_VARIABLE
from workbench.launchers.queue.settings import physical_cores, write_settings


def test_as_many_as_the_queue_has_cores_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(QUEUE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    for cores, threads, runs in ((1, 1, 1), (6, 1, 6), (6, 2, 3), (2, 4, 1), (99, 1, 8), (6, 0, 1)):
        write_settings(tmp_path, {"cores": cores})
        assert at_once([threads, min(threads, 1)]) == runs, (cores, threads)


def test_without_a_queue_as_many_as_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(QUEUE_VARIABLE, OFF)
    assert at_once([1]) == physical_cores()
