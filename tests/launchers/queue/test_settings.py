"""Settings of the queue: one file, checked when written, never trusted when read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.base.errors import RunError
from workbench.launchers.queue.settings import FILE, QueueSettings, physical_cores, read_settings, write_settings


def test_defaults_are_the_machine(tmp_path: Path) -> None:
    found = read_settings(tmp_path)
    assert found == QueueSettings()
    assert 1 <= found.capacity == physical_cores() <= (os.cpu_count() or 1)


def test_what_is_written_is_in_force_and_an_empty_value_is_the_default(tmp_path: Path) -> None:
    assert write_settings(tmp_path, {"cores": 3, "running_per_owner": 2}).capacity == 3
    assert write_settings(tmp_path, {"cores": None}) == QueueSettings(running_per_owner=2)
    assert write_settings(tmp_path, {"runs_per_gpu": None}).runs_per_gpu == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"coers": 1}, "did you mean 'cores'"),
        ({"cores": 0}, "0 is not a whole number"),
        ({"cores": True}, "True is not"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(tmp_path: Path, change: dict[str, int], said: str) -> None:
    write_settings(tmp_path, {"cores": 3})
    with pytest.raises(RunError, match=said):
        write_settings(tmp_path, change)
    assert read_settings(tmp_path).cores == 3


@pytest.mark.parametrize(("text", "cores"), [("{", None), ("[]", None), ('{"cores": 2, "runs_per_gpu": "x"}', 2)])
def test_a_damaged_file_is_said_and_the_rest_stands(tmp_path: Path, text: str, cores: int | None) -> None:
    (tmp_path / FILE).write_text(text)
    found = read_settings(tmp_path)
    assert (found.cores, found.runs_per_gpu) == (cores, 1)
    assert "`workbench queue set NAME=NUMBER` writes the file anew" in found.problem
    assert write_settings(tmp_path, {"cores": 4}) == QueueSettings(cores=4)
