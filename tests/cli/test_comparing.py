"""Runs side by side through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.jupyter.live import run_folder
from workbench import presets
from workbench.cli.command import main


def test_runs_stand_side_by_side_as_text_json_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, rate in enumerate((0.001, 0.002)):
        folder = run_folder(tmp_path / f"2026010{number + 1}-000000-a-000000-0000", "finished", False)
        presets.get("fast").with_(optimizer={"lr": rate}, name=f"rate {rate}").save(folder.recipe)
    asked = ["compare", "20260101", "rate 0.002", "--runs", str(tmp_path)]
    assert main(asked) == 0
    said = capsys.readouterr().out
    assert "rate 0.001" in said
    assert "optimizer.lr: 0.001 | 0.002" in said
    assert main([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in told["runs"]] == ["rate 0.001", "rate 0.002"]
    assert "memory for training (GiB)" in said
    assert all("memory_for_training_gib" in row for row in told["runs"])
    assert told["knobs"]["optimizer.lr"] == [0.001, 0.002]
    assert main(["compare", "20260101", "gone", "--runs", str(tmp_path)]) == 2
    assert "gone" in capsys.readouterr().err


@pytest.mark.process
def test_a_comparison_is_written_as_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_folder(tmp_path / "20260101-000000-a-000000-0000", "finished", False)
    page = tmp_path / "page.html"
    assert main(["compare", "20260101", "--runs", str(tmp_path), "--report", str(page)]) == 0
    assert str(page) in capsys.readouterr().err
    assert "<html" in page.read_text(encoding="utf-8").lower()
