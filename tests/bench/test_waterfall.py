"""Factors along a chain of contenders."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from workbench.bench.waterfall import draw, table, waterfall


def test_factors_multiply_to_the_whole() -> None:
    # The second round ran on a machine twice as slow.
    readings = {"a": [100.0, 50.0, 100.0], "b": [300.0, 150.0, 310.0], "c": [150.0, 75.0, 155.0]}
    found = waterfall(readings, [("", "a"), ("heads", "b"), ("hats", "c")])
    assert found["start"] == "a"
    assert [step["what"] for step in found["steps"]] == ["heads", "hats"]
    assert [step["factor"] for step in found["steps"]] == [pytest.approx(3.0), pytest.approx(0.5)]
    assert math.prod(step["factor"] for step in found["steps"]) == pytest.approx(found["whole"])
    assert (found["steps"][0]["min"], found["steps"][0]["max"]) == (pytest.approx(3.0), pytest.approx(3.1))
    assert table(found, "title").row_count == 2


def test_it_is_drawn(tmp_path: Path) -> None:
    found = waterfall({"a": [1.0], "b": [4.0]}, [("", "a"), ("heads", "b")])
    path = draw(found, "Heads", tmp_path / "heads.png")
    assert path.read_bytes().startswith(b"\x89PNG")
