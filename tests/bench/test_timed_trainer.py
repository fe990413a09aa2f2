"""A recipe trained and timed step by step in this process: real loop, tiny model."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest

from workbench import presets
from workbench.bench import contender, timed_trainer
from workbench.recipe import Recipe


@pytest.fixture
def tiny(learnable: list[str]) -> Recipe:
    return presets.fast().with_assignments(learnable).with_(budget="6 steps")


def said(module: Any, recipe: Recipe, asked: str, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    out = io.StringIO()
    monkeypatch.setattr(sys, "argv", ["child", json.dumps({"name": "tiny", "recipe": recipe.to_dict()})])
    monkeypatch.setattr(sys, "stdin", io.StringIO(asked))
    monkeypatch.setattr(sys, "stdout", out)
    # The test runner is nobody's child here.
    monkeypatch.setattr(contender, "die_with_parent", lambda: None)
    module.main()
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_every_step_is_timed(tiny: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    ready, first, second = said(timed_trainer, tiny, '{"steps": 4}\n{"steps": 2}\n', monkeypatch)
    assert ready["ready"]["parameters"] > 128 * 64
    assert [len(answer["wall_seconds"]) for answer in (first, second)] == [4, 2]
    assert [answer["tokens"] for answer in (first, second)] == [4 * 16 * 32, 2 * 16 * 32]
    assert all(seconds > 0 for seconds in first["seconds"])
    assert first["flops"] > 0
    assert first["stages"] == [0, 0, 0, 0]


def test_a_rate_too_steep_is_timed_all_the_same(tiny: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    steep = tiny.with_(optimizer={"lr": 100.0, "clip_norm": None, "schedule": {"kind": "cosine"}})
    _, answer = said(timed_trainer, steep, '{"steps": 6}\n', monkeypatch)
    assert len(answer["wall_seconds"]) == 6
