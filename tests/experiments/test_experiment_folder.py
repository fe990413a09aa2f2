"""Where the folders of races and sweeps stand, and in which order they are listed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.experiments.experiment_folder import RaceFolder, append_json, json_objects


def test_of_two_begun_in_one_second_the_one_written_first_is_older(tmp_path: Path) -> None:
    root = RaceFolder.root(tmp_path / "runs")
    written = ["20260101-000001-race-aaaaaa-ffff", "20260101-000001-race-aaaaaa-0000", "20260101-000000-race-aaaaaa-1"]
    for moment, name in enumerate(written):
        folder = RaceFolder(root / name)
        folder.path.mkdir(parents=True)
        folder.plan.write_text("{}")
        os.utime(folder.plan, (1000 + moment, 1000 + moment))
    (root / "20260101-000002-race-aaaaaa-2").mkdir()
    assert RaceFolder.ids(tmp_path / "runs") == [written[2], written[0], written[1]]


def test_half_a_line_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    append_json(path, {"kind": "launched"}, {"kind": "resumed"})
    with path.open("a") as file:
        file.write('{"kind": "with')
    append_json(path, {"kind": "cancelled"})
    assert [each["kind"] for each in json_objects(path)] == ["launched", "resumed", "cancelled"]


def test_a_disk_that_takes_half_a_line_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = tmp_path / "events.jsonl", os.write
    append_json(path, {"kind": "launched"})
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:9]))
        with pytest.raises(OSError, match="No space left on device"):
            append_json(path, {"kind": "withdrawn"})
    assert path.read_bytes() == before


def test_the_command_that_follows_one_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path / "runs"))
    assert RaceFolder(tmp_path / "races" / "a-race").command == "workbench race a-race"
    elsewhere = tmp_path / "my disk" / "races" / "a-race"
    assert RaceFolder(elsewhere).command == f"workbench race '{elsewhere}'"
