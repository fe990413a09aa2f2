"""A result file says what ran, where and with what."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from workbench.bench.result import save, spread


def test_spread_of_readings() -> None:
    assert spread([3.0, 1.0, 2.0]) == {"median": 2.0, "min": 1.0, "max": 3.0}


@pytest.mark.process
def test_saved_file_has_hardware_versions_and_date(tmp_path: Path) -> None:
    path = save("trial", {"ratio": 2.5}, tmp_path / "new")
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert path.name == f"trial-{saved['date']}.json"
    assert saved["ratio"] == 2.5
    assert saved["hardware"]["cores"] == os.cpu_count()
    assert saved["versions"]["torch"] == torch.__version__
    assert os.uname().nodename not in path.read_text(encoding="utf-8"), "no host names in files meant to be shared"


@pytest.mark.process
def test_a_second_result_of_one_day_overwrites_nothing(tmp_path: Path) -> None:
    first, second = save("trial", {"ratio": 1.0}, tmp_path), save("trial", {"ratio": 2.0}, tmp_path)
    assert second.stem == f"{first.stem}-2"
    assert [json.loads(path.read_text(encoding="utf-8"))["ratio"] for path in (first, second)] == [1.0, 2.0]
