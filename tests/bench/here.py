"""Contenders in this process, where torch has been loaded: what they answer is the same."""

from __future__ import annotations

import importlib
import io
import json
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from workbench.bench import contender, peers, rounds, timed_trainer
from workbench.bench.rounds import Entrant, SpeedRounds


def said(module: Any, setting: dict[str, Any], asked: str, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return what a contender's program says to these lines of its parent."""
    out = io.StringIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", ["child", json.dumps({"name": "child", **setting})])
        patch.setattr(sys, "stdin", io.StringIO(asked))
        patch.setattr(sys, "stdout", out)
        # The test runner is nobody's child here.
        patch.setattr(contender, "die_with_parent", lambda: None)
        module.main()
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.fixture
def turns_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Races whose contenders train here, one after the other: that they take turns is shown with others."""

    def take_rounds(entrants: Mapping[str, Entrant], *, rounds: int, steps: int, **more: Any) -> SpeedRounds:
        more = {"memory": True, "warmup": more["warmup"]} if "warmup" in more else {}
        asked = rounds * f'{{"steps": {steps}}}\n'
        told = {
            name: said(importlib.import_module(module), {**setting, **more}, asked, monkeypatch)
            for name, (module, setting) in entrants.items()
        }
        ready = {name: answers[0]["ready"] for name, answers in told.items()}
        return SpeedRounds(ready, {name: answers[1:] for name, answers in told.items()}, {})

    for module in (rounds, peers):
        monkeypatch.setattr(module, "take_rounds", take_rounds)
    # Only of a process of its own one can say what it grows by.
    monkeypatch.setattr(timed_trainer.PeakMemory, "grown", property(lambda self: 1 << 20))
