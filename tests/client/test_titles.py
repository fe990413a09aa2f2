"""Runs of one name are told apart by what differs, wherever several are shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from workbench.client.titles import titles
from workbench.jupyter.feed import wire
from workbench.jupyter.feed.track import Track
from workbench.jupyter.runs.run_actions import RunActions
from workbench.plots.report import main
from workbench.store.folder import RunFolder, write_json
from workbench.store.labels import label
from workbench.store.state import write_state

ADAMW = {"kind": "adamw", "lr": 0.001, "beta": 0.9}
LANS = {"kind": "lans", "lr": 0.003}


def run(root: Path, run_id: str, optimizer: dict[str, Any] = ADAMW, name: str = "fast", seed: int = 0) -> RunFolder:
    folder = RunFolder(root / run_id)
    folder.path.mkdir()
    recipe = {"name": name, "notes": run_id, "optimizer": optimizer, "depth": {"kind": "full", "rate": 0.5}}
    write_json(folder.recipe, recipe | {"seed": seed})
    write_state(folder, status="finished")
    return folder


def test_kinds_first_then_numbers_then_seeds_times_and_ids(tmp_path: Path) -> None:
    adamw, lans = run(tmp_path, "a"), run(tmp_path, "b", LANS)
    faster, again = run(tmp_path, "c", ADAMW | {"lr": 0.01}), run(tmp_path, "d", seed=1)
    assert titles([adamw]) == ["fast"]
    assert titles([adamw, run(tmp_path, "e", LANS, "other")]) == ["fast", "other"], "no knob where names do"
    assert titles([adamw, lans]) == ["fast · adamw", "fast · lans"]
    assert titles([adamw, faster]) == ["fast · lr 0.001", "fast · lr 0.01"]
    assert titles([adamw, lans, faster]) == [
        "fast · adamw · lr 0.001",
        "fast · lans · lr 0.003",
        "fast · adamw · lr 0.01",
    ]
    assert titles([adamw, again]) == ["fast · seed 0", "fast · seed 1"]
    assert titles([adamw, lans, again]) == ["fast · adamw · seed 0", "fast · lans", "fast · adamw · seed 1"]
    first, second = (run(tmp_path, f"20260101-00000{k}-fast-abcd{k}") for k in (1, 2))
    assert [title[-2:] for title in titles([first, second])] == ["01", "02"]
    ends = [run(tmp_path, f"20260101-000005-fast-wxy{k}") for k in (1, 2)]
    assert titles(ends) == ["fast · wxy1", "fast · wxy2"]


def test_a_renamed_run_needs_nothing_to_be_told_apart_by_and_may_need_it_anew(tmp_path: Path) -> None:
    adamw, lans, other = run(tmp_path, "a"), run(tmp_path, "b", LANS), run(tmp_path, "c", LANS, "other")
    label(lans, name="best")
    assert titles([adamw, lans, other]) == ["fast", "best", "other"]
    label(other, name="fast")
    assert titles([adamw, lans, other]) == ["fast · adamw", "best", "fast · lans"]
    tracks = [Track(folder) for folder in (adamw, lans, other)]
    for track in tracks:
        track.poll()
    assert wire.names_of(tracks) == ["fast · adamw", "best", "fast · lans"]


def test_budgets_are_told_with_their_unit(tmp_path: Path) -> None:
    folders = [run(tmp_path, name) for name in "abcd"]
    budgets = ((90.0, "seconds"), (25.0, "steps"), (1.0, "steps"), (2.5e6, "tokens"))
    for folder, (amount, unit) in zip(folders, budgets, strict=True):
        recipe = json.loads(folder.recipe.read_text())
        write_json(folder.recipe, recipe | {"budget": {"amount": amount, "unit": unit}})
    assert titles(folders) == ["fast · 90 s", "fast · 25 steps", "fast · 1 step", "fast · 2,500,000 tokens"]


def test_page_report_and_comparison_call_them_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [run(tmp_path, "a"), run(tmp_path, "b", LANS)]
    called = ["fast · adamw", "fast · lans"]
    for track in (tracks := [Track(folder) for folder in folders]):
        track.poll()
    header, _ = wire.snapshot(tracks)
    assert [each["name"] for each in header["runs"]] == called
    assert all(name.encode() in wire.saved_snapshot(tracks).replace(b"\\u00b7", "·".encode()) for name in called)
    (compared,) = RunActions(tmp_path, lambda: None).perform("compare", ["a", "b"], {})
    assert compared.sheet is not None
    assert compared.sheet["title"] == "Comparison of fast · adamw, fast · lans"
    assert [each["name"] for each in compared.sheet["runs"]] == called
    (differ,) = RunActions(tmp_path, lambda: None).perform("diff", ["a", "b"], {})
    assert differ.sheet is not None
    assert differ.sheet["title"] == "Knobs that differ: fast · adamw and fast · lans"
    assert main([*(str(folder.path) for folder in folders), "--out", str(tmp_path / "report.html")]) == 0, capsys
    assert "<h1>fast · adamw and fast · lans</h1>" in (tmp_path / "report.html").read_text()
