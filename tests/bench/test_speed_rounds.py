"""Contenders take turns: quick ones, in real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.bench.speed_rounds import Entrant, take_rounds

CHILD = """
import json, sys
from workbench.bench.contender import Stage
setting = json.loads(sys.argv[1])
if setting["name"] == "broken":
    sys.exit("no such device")
stage = Stage()
stage.say({"ready": {"warmup": {"losses": [3.0] * setting["warmup"]}}})
while (steps := stage.next_steps()) is not None:
    stage.say({"seconds": 0.5 * steps, "tokens": setting["tokens"] * steps, "losses": [2.0] * steps})
"""


@pytest.fixture
def entrants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Entrant]:
    (tmp_path / "turn_taker.py").write_text(CHILD, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return {name: Entrant("turn_taker", {"tokens": tokens}) for name, tokens in (("a", 100), ("broken", 0), ("b", 50))}


@pytest.mark.process
def test_one_that_cannot_run_is_named_and_the_others_go_on(
    entrants: dict[str, Entrant], capfd: pytest.CaptureFixture[str]
) -> None:
    held = take_rounds(entrants, rounds=2, steps=2, warmup=1, all_needed=False)
    assert held.failed == {"broken": "no such device"}
    assert held.rates() == {"a": [200.0, 200.0], "b": [100.0, 100.0]}
    assert held.losses("a") == [3.0, 2.0, 2.0, 2.0, 2.0]
    assert "broken cannot run here: no such device" in capfd.readouterr().err


@pytest.mark.process
def test_one_that_is_needed_ends_the_race(entrants: dict[str, Entrant]) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)'broken' ended.*no such device"):
        take_rounds(entrants, rounds=1, steps=1, warmup=1)
