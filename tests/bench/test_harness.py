"""A spec becomes a command: its options, its result file and what it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.bench.harness import Bench, in_turn, recipe_of, rounds_of


def test_first_and_last_change_places() -> None:
    assert [list(in_turn("AB", number)) for number in range(4)] == [["A", "B"], ["B", "A"], ["A", "B"], ["B", "A"]]


def test_a_spec_measures_saves_and_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench(
        "toy", "A toy.", lambda options: {"seed": recipe_of(options).seed, **rounds_of(options), "only": options.only},
        lambda result, console, path: console.print(f"{result['rounds']} rounds beside {path.exists()}"),
        preset="fast", rounds=3, steps=2, warmup=1, options={"--only": {"nargs": "+"}}, saved_as="toys",
    )  # fmt: skip
    assert bench.main(["--set", "seed=5", "--rounds", "4", "--only", "a", "b", "--out", str(tmp_path)]) == 0
    (path,) = tmp_path.glob("toys-*.json")
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert (saved["seed"], saved["rounds"], saved["steps"], saved["warmup"], saved["only"]) == (5, 4, 2, 1, ["a", "b"])
    assert {"hardware", "versions", "revision", "date"} <= saved.keys()
    assert "4 rounds beside True" in capsys.readouterr().out
