"""The benchmark of AdaSum: equal tokens for every arm, rates that are tuned alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.bench.adasum import TUNING_SEED, arms, base, main, tuned
from workbench.recipes.recipe import Recipe


def test_arms_read_equal_tokens_and_differ_in_nothing_else() -> None:
    found = arms(base("adamw", 4, 8192), [2, 4])
    assert list(found) == ["mean x1", "mean x2", "adasum x2", "mean x4", "adasum x4"]
    assert [arm.data.batch_size for arm in found.values()] == [4, 8, 8, 16, 16]
    assert {arm.budget.amount for arm in found.values()} == {8192}
    assert list(found["mean x4"].diff(found["adasum x4"])) == ["optimizer.combine.kind", "optimizer.combine.workers"]


def test_the_grid_goes_on_while_its_best_is_at_an_end() -> None:
    asked: list[tuple[float, int]] = []

    def loss(recipe: Recipe) -> float:
        asked.append((recipe.optimizer.lr, recipe.seed))
        return abs(recipe.optimizer.lr - 8e-3)

    best, tried = tuned(base("adamw", 4, 8192), [1e-3, 2e-3, 4e-3], loss)
    assert best == 8e-3
    assert list(tried) == [1e-3, 2e-3, 4e-3, 8e-3, 16e-3]
    assert {seed for _, seed in asked} == {TUNING_SEED}


@pytest.mark.slow
def test_a_toy_of_it_says_what_it_measured(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.dumps({"kind": "files", "paths": [str(corpus)], "tokenizer": {"vocabulary_size": 256},
                       "sequence_length": 32, "batch_size": 4})  # fmt: skip
    small = ["--set", f"data={data}", "--set", "architecture.layers=1", "--set", "architecture.width=16"]
    small += ["--tokens", "4096", "--times", "2", "--rates", "1e-3", "2e-3", "4e-3", "--seeds", "1"]
    assert main([*small, "--out", str(tmp_path)]) == 0
    (path,) = tmp_path.glob("adasum-*.json")
    found = json.loads(path.read_text())["arms"]
    assert list(found) == ["mean x1", "mean x2", "adasum x2"]
    assert [arm["rows"] for arm in found.values()] == [4, 8, 8]
    assert len({arm["losses"][0] for arm in found.values()}) == 3
    assert "beside the mean of gradients" in capsys.readouterr().out
