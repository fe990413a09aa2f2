"""A recipe trained and timed step by step in this process: real loop, tiny model."""

from __future__ import annotations

import pytest

from tests.bench.here import said
from workbench import presets
from workbench.bench import timed_trainer
from workbench.recipes.recipe import Recipe
from workbench.telemetry.streams import RECENT


@pytest.fixture
def tiny(learnable: list[str]) -> Recipe:
    return presets.fast().with_assignments(learnable).with_(budget="6 steps")


def test_every_step_is_timed(tiny: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = {"recipe": tiny.to_dict()}
    ready, first, second = said(timed_trainer, setting, '{"steps": 4}\n{"steps": 2}\n', monkeypatch)
    assert ready["ready"]["parameters"] > 128 * 64
    assert [len(answer["wall_seconds"]) for answer in (first, second)] == [4, 2]
    assert [answer["tokens"] for answer in (first, second)] == [4 * 16 * 32, 2 * 16 * 32]
    assert all(seconds > 0 for seconds in first["seconds"])
    assert first["flops"] > 0
    assert first["stages"] == [0, 0, 0, 0]


def test_a_rate_too_steep_is_timed_all_the_same(tiny: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    steep = tiny.with_(optimizer={"lr": 100.0, "clip_norm": None, "schedule": {"kind": "cosine"}})
    _, answer = said(timed_trainer, {"recipe": steep.to_dict()}, '{"steps": 6}\n', monkeypatch)
    assert len(answer["wall_seconds"]) == 6


def test_a_long_round_tells_the_losses_of_all_its_steps(tiny: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run itself keeps the last fifty; curves that are compared step by step are longer."""
    setting = {"recipe": tiny.with_(budget="200 steps").to_dict(), "warmup": RECENT + 3}
    ready, answer = said(timed_trainer, setting, f'{{"steps": {RECENT + 1}}}\n', monkeypatch)
    assert len(ready["ready"]["warmup"]["losses"]) == RECENT + 3
    assert len(answer["losses"]) == RECENT + 1
    assert answer["losses"][0] < ready["ready"]["warmup"]["losses"][0], "they go on from where the warm-up ended"
