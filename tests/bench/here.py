"""Contenders in this process, where torch has been loaded: what they answer is the same."""

from __future__ import annotations

import importlib
import io
import json
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from workbench.bench import contender, rounds, step_costs, timed_trainer


def said(module: Any, setting: dict[str, Any], asked: str, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a contender's program says to these lines of its parent."""
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

    def take_turns(settings: Sequence[tuple[str, dict[str, Any]]], rounds: int, steps: int, *_: Any) -> Any:
        told = {
            setting["name"]: said(
                importlib.import_module(module), setting, rounds * f'{{"steps": {steps}}}\n', monkeypatch
            )
            for module, setting in settings
        }
        ready = {name: answers[0]["ready"] for name, answers in told.items()}
        return ready, {name: answers[1:] for name, answers in told.items()}

    for module in (rounds, step_costs):
        monkeypatch.setattr(module, "take_turns", take_turns)
    # Only of a process of its own one can say what it grows by.
    monkeypatch.setattr(timed_trainer.PeakMemory, "grown", property(lambda self: 1 << 20))
