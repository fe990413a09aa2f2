"""The sweep of presets: what it tries, in which order, and that a second start runs nothing again."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from workbench import presets
from workbench.bench import presets as bench
from workbench.bench.harness import run
from workbench.recipes.recipe import Recipe


def each(loss_of: Callable[[Recipe], float]) -> Callable[[Sequence[Recipe]], list[float]]:
    """Of several recipes."""
    return lambda recipes: [loss_of(recipe) for recipe in recipes]


def bowl(lr: float, warmup: float):
    """Losses that are least at one rate and warm-up, of several recipes; with every recipe they were asked for."""
    seen: list[tuple[float, float]] = []

    def loss_of(recipe: Recipe) -> float:
        at = recipe.optimizer.schedule.warmup
        seen.append((recipe.optimizer.lr, at))
        return 5 + abs(math.log2(recipe.optimizer.lr / lr)) + abs(at - warmup)

    return each(loss_of), seen


@pytest.mark.parametrize("factor", [0.125, 0.5, 1.0, 4.0])
def test_the_best_rate_is_interior_or_as_far_as_the_search_goes(factor: float) -> None:
    start = presets.fast().optimizer.lr
    losses_of, seen = bowl(start * factor, presets.fast().optimizer.schedule.warmup)
    best, loss = bench.sweep(presets.fast(), losses_of)
    assert best.optimizer.lr == pytest.approx(start * factor)
    assert loss == pytest.approx(5)
    assert len(seen) == len(set(seen)), "nothing is trained twice"


@pytest.mark.parametrize(
    ("optimum", "found", "tried"), [(1.0, 1.0, 3), (2.0, 2.0, 4), (0.5, 0.5, 4), (8.0, 8.0, 5), (64.0, 8.0, 5)]
)
def test_the_search_follows_the_slope_but_not_for_ever(optimum: float, found: float, tried: int) -> None:
    recipe = presets.fast().with_(optimizer={"lr": 1.0, "schedule": {"kind": "linear"}})
    rates: list[float] = []
    best, _ = bench.sweep(
        recipe, each(lambda at: rates.append(at.optimizer.lr) or abs(math.log2(at.optimizer.lr / optimum)))
    )
    assert best.optimizer.lr == pytest.approx(found)
    assert len(rates) == tried


def test_the_search_leaves_a_cliff_downwards() -> None:
    start = presets.fast().optimizer.lr
    best, _ = bench.sweep(presets.fast(), each(lambda at: 5.0 if at.optimizer.lr <= start / 4 else math.inf))
    assert best.optimizer.lr in (start / 4, start / 8)
    assert bench.sweep(presets.fast(), each(lambda at: math.inf))[1] == math.inf


@pytest.mark.parametrize("other", [0.05, 0.2, 0.4])
def test_a_longer_warmup_is_tried_with_a_higher_rate(other: float) -> None:
    start = presets.fast().optimizer.lr
    losses_of, seen = bowl(start, other)
    best, _ = bench.sweep(presets.fast(), losses_of)
    assert best.optimizer.schedule.warmup == other
    assert (start * 2, other) in seen
    assert any(share == 0.4 for _, share in seen) == (other >= 0.2), "beyond the longest only where it won"


def test_with_a_longer_warmup_the_rate_rises_for_as_long_as_that_pays() -> None:
    def loss_of(recipe: Recipe) -> float:
        at, doublings = recipe.optimizer.schedule.warmup, math.log2(recipe.optimizer.lr / start)
        return 4.4 + abs(doublings - 2) / 10 if at == 0.4 else 5 - at + abs(doublings)

    start = presets.fast().optimizer.lr
    best, _ = bench.sweep(presets.fast(), each(loss_of))
    assert best.optimizer.schedule.warmup == 0.4
    assert best.optimizer.lr == pytest.approx(4 * start)


def test_a_schedule_without_warmup_is_left_alone() -> None:
    linear = presets.fast().with_(optimizer={"schedule": {"kind": "linear"}})
    rates: list[float] = []
    bench.sweep(linear, each(lambda at: rates.append(at.optimizer.lr) or abs(math.log(at.optimizer.lr / 1e-3))))
    assert len(rates) == len(set(rates)) >= 3


@pytest.mark.extended
@pytest.mark.process
def test_runs_are_kept_and_not_repeated(learnable: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def ask(message: dict[str, Any]) -> dict[str, Any]:
        asked.append(message["recipe"]["optimizer"]["lr"])
        return {"loss": 5.0 + abs(math.log2(asked[-1] / 1e-3)), "steps": 3, "cpu_seconds": 1.0}

    child = contextlib.nullcontext(SimpleNamespace(ready={"unigram_entropy": 6.0}, ask=ask))
    monkeypatch.setattr(bench, "Contender", lambda *_: child)
    knobs = [part for knob in [*learnable, "budget.amount=3"] for part in ("--set", knob)]
    arguments = ["fast", "--out", str(tmp_path / "presets.json"), *knobs]
    assert run("presets", arguments) == 0
    saved, trained = json.loads((tmp_path / "presets.json").read_text()), len(asked)
    assert len(saved["runs"]) == trained >= 5
    assert saved["scores"]["fast, loss, nats"]["value"] == min(each["loss"] for each in saved["runs"].values())
    assert run("presets", arguments) == 0
    assert len(asked) == trained, "every run was known"
