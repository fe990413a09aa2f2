"""The demo measured over seeds, on a corpus and sizes that take seconds; real processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from workbench import presets
from workbench.bench.demo import measure


@pytest.mark.extended
@pytest.mark.process
def test_gaps_by_seed(learnable: list[str], tmp_path: Path) -> None:
    slow, fast = (preset(5.0).with_assignments(learnable) for preset in (presets.demo_baseline, presets.demo_fast))
    recipes = [slow.with_(budget={"amount": 5, "unit": "steps"}), fast.with_(budget={"amount": 40, "unit": "steps"})]
    result = measure(recipes, [0, 1], tmp_path / "runs", Console(quiet=True))
    assert [(run["recipe"], run["seed"]) for run in result["runs"]] == [
        ("demo_baseline", 0), ("demo_fast", 0), ("demo_baseline", 1), ("demo_fast", 1),
    ]  # fmt: skip
    gaps = result["gap_nats"]["by_seed"]
    assert gaps == [result["unigram_entropy"] - run["heldout_loss"] for run in result["runs"][1::2]]
    assert gaps[0] != gaps[1], "seeds differ"
    assert result["gap_nats"]["spread"] == pytest.approx(max(gaps) - min(gaps))
    assert [run["steps"] for run in result["runs"]] == [5, 40, 5, 40]
