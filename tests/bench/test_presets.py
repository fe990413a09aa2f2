"""The sweep of presets: what it tries, in which order, and that a second start runs nothing again."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from workbench import presets
from workbench.bench import presets as bench
from workbench.recipe import Recipe


def bowl(lr: float, warmup: float):
    """A loss that is least at one rate and warm-up, as a function of the recipe; with every recipe it was asked for."""
    seen: list[tuple[float, float]] = []

    def loss_of(recipe: Recipe) -> float:
        at = recipe.optimizer.schedule.warmup
        seen.append((recipe.optimizer.lr, at))
        return 5 + abs(math.log2(recipe.optimizer.lr / lr)) + abs(at - warmup)

    return loss_of, seen


@pytest.mark.parametrize("factor", [0.125, 0.5, 1.0, 4.0])
def test_the_best_rate_is_interior_or_as_far_as_the_search_goes(factor: float) -> None:
    start = presets.fast().optimizer.lr
    loss_of, seen = bowl(start * factor, presets.fast().optimizer.schedule.warmup)
    best, loss = bench.sweep(presets.fast(), loss_of)
    assert best.optimizer.lr == pytest.approx(start * factor)
    assert loss == pytest.approx(5)
    assert len(seen) == len(set(seen)), "nothing is trained twice"


def test_a_longer_warmup_is_tried_with_a_higher_rate() -> None:
    start = presets.fast().optimizer.lr
    own = presets.fast().optimizer.schedule.warmup
    other = next(share for share in reversed(bench.WARMUPS) if share != own)
    loss_of, seen = bowl(start, other)
    best, _ = bench.sweep(presets.fast(), loss_of)
    assert best.optimizer.schedule.warmup == other
    assert (start * 2, other) in seen


def test_a_schedule_without_warmup_is_left_alone() -> None:
    linear = presets.fast().with_(optimizer={"schedule": {"kind": "linear"}})
    rates: list[float] = []
    bench.sweep(linear, lambda recipe: rates.append(recipe.optimizer.lr) or abs(math.log(recipe.optimizer.lr / 1e-3)))
    assert len(rates) == len(set(rates)) >= 3


@pytest.mark.process
def test_real_runs_are_kept_and_not_repeated(
    learnable: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    knobs = [part for knob in [*learnable, "budget.amount=3"] for part in ("--set", knob)]
    arguments = ["fast", "--out", str(tmp_path / "presets.json"), *knobs]
    assert bench.main(arguments) == 0
    first = capsys.readouterr().out
    saved = json.loads((tmp_path / "presets.json").read_text())
    assert len(saved["runs"]) >= 5
    assert all(run["steps"] == 3 and run["loss"] > 2 for run in saved["runs"].values())
    assert bench.main(arguments) == 0
    again = capsys.readouterr().out
    assert again.splitlines() == first.splitlines()[-1:], "only the verdict: every run was known"
