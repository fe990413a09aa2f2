"""Runs of an experiment, read from their folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiments.sweep.conftest import finish
from workbench.experiments import readings
from workbench.experiments.readings import reading_of, trained_on
from workbench.store.folder import RunFolder, write_json


def test_a_run_that_has_finished_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, read = RunFolder(tmp_path / "a-run"), []
    read_evaluations = readings.read_evaluations
    monkeypatch.setattr(readings, "read_evaluations", lambda path: read.append(path) or read_evaluations(path))
    finish(folder, 2.0)
    assert [reading_of(folder, {}).loss for _ in range(3)] == [2.0] * 3
    assert read == [folder]
    finish(folder, 1.5)
    assert reading_of(folder, {}).loss == 1.5, "another one stands in its place"


def test_settings_are_counted_and_hosts_left_out(tmp_path: Path) -> None:
    folders = [RunFolder(tmp_path / name) for name in "abcd"]
    for folder, revision in zip(
        folders, ["0123456789ab", "ba9876543210+changes", "ba9876543210+changes"], strict=False
    ):
        folder.path.mkdir()
        write_json(folder.environment, {
            "device": "a processor", "cores": 2, "threads": 1, "python": "3.11.7", "git": revision,
            "host": "a name", "packages": {"torch": "2.13.0", "workbench": "0.1.0", "numpy": "2.3"},
        })  # fmt: skip
    said = {"device": "a processor", "cores": 2, "threads": 1, "python": "3.11.7", "torch": "2.13.0",
            "workbench": "0.1.0"}  # fmt: skip
    # The last was never launched.
    assert trained_on(folders) == [
        {**said, "git": "ba9876543210+changes", "runs": 2},
        {**said, "git": "0123456789ab", "runs": 1},
    ]


def test_what_is_written_otherwise_is_no_error(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.environment.write_text('{"packages": null, "git": 3}')
    assert trained_on([folder])[0]["torch"] is None
    folder.environment.write_text("[1]")
    assert trained_on([folder]) == []
