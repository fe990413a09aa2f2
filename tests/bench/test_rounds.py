"""Contenders take turns, and their rounds are compared; these are no processes (tests/bench/test_contender.py)."""

from __future__ import annotations

import math
from typing import Any

import pytest

from workbench.base.errors import WorkbenchError
from workbench.bench import rounds
from workbench.bench.rounds import AT_ONCE, Entrant, beside, take_rounds, waterfall


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of contenders, as they are asked for a round."""
    names: list[str] = []

    class Child:
        """Ends where its setting says so."""

        def __init__(self, _module: str, setting: dict[str, Any]) -> None:
            self.name, self.setting = setting["name"], setting

        def __enter__(self) -> Child:
            self._live("start")
            self.ready = {"warmup": {"losses": [3.0] * self.setting["warmup"]}}
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def ask(self, message: dict[str, int]) -> dict[str, Any]:
            names.append(self.name)
            self._live(names.count(self.name))
            steps = message["steps"]
            return {"seconds": 0.5 * steps, "tokens": self.setting["tokens"] * steps, "losses": [2.0] * steps}

        def _live(self, moment: object) -> None:
            if self.setting.get("ends") == moment:
                raise RuntimeError(f"contender '{self.name}' ended with exit code 1; its last words:\nno such device")

    monkeypatch.setattr(rounds, "Contender", Child)
    return names


def entrants(**ends: object) -> dict[str, Entrant]:
    """Three of them; by name, when one ends: at its ``start``, or in a round."""
    speeds = {"a": 100, "b": 80, "c": 50}
    return {name: Entrant("", {"tokens": tokens, "ends": ends.get(name)}) for name, tokens in speeds.items()}


def test_first_and_last_change_places_from_round_to_round(asked: list[str]) -> None:
    held = take_rounds(entrants(), rounds=3, steps=2, warmup=1)
    assert asked == [*"abc", *"cba", *"abc"]
    assert held.rates() == {"a": [200.0] * 3, "b": [160.0] * 3, "c": [100.0] * 3}
    assert held.losses("a") == [3.0] + [2.0] * 6


@pytest.mark.parametrize("moment", ["start", 2])
def test_one_that_ends_is_named_and_the_others_go_on(
    moment: object, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    held = take_rounds(entrants(b=moment), rounds=3, steps=2, warmup=1, all_needed=False)
    assert held.failed == {"b": "no such device"}
    assert set(held.ready) == set(held.answers) == set(held.rates()) == {"a", "c"}
    assert asked.count("a") == asked.count("c") == 3
    assert asked.count("b") == (0 if moment == "start" else moment), "whoever has ended is asked for nothing more"
    assert "b cannot run here: no such device" in capsys.readouterr().err


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("moment", ["start", 1])
def test_one_that_is_needed_ends_the_race(moment: object) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)'b' ended.*no such device"):
        take_rounds(entrants(b=moment), rounds=1, steps=1, warmup=1)


def test_factors_multiply_to_the_whole() -> None:
    # The second round ran on a machine twice as slow.
    readings = {"a": [100.0, 50.0, 100.0], "b": [300.0, 150.0, 310.0], "c": [150.0, 75.0, 155.0]}
    found = waterfall(readings, [("", "a"), ("heads", "b"), ("hats", "c")])
    assert found["start"] == "a"
    assert [step["what"] for step in found["steps"]] == ["heads", "hats"]
    assert [step["factor"] for step in found["steps"]] == [pytest.approx(3.0), pytest.approx(0.5)]
    assert math.prod(step["factor"] for step in found["steps"]) == pytest.approx(found["whole"])
    assert (found["steps"][0]["min"], found["steps"][0]["max"]) == (pytest.approx(3.0), pytest.approx(3.1))
    assert [step["so_far"] for step in found["steps"]] == [pytest.approx(3.0), pytest.approx(1.5)]


def test_few_are_alive_at_once_each_time_with_the_baseline(asked: list[str]) -> None:
    many = {"a": Entrant("", {"tokens": 1}), **{f"b{number}": Entrant("", {"tokens": 1}) for number in range(AT_ONCE)}}
    groups = [list(held.ready) for held in beside("a", many, rounds=1, steps=1, warmup=1)]
    assert groups == [["a", *(f"b{number}" for number in range(AT_ONCE - 1))], ["a", f"b{AT_ONCE - 1}"]]
    with pytest.raises(WorkbenchError, match=r"'a' cannot run this recipe here: no such device"):
        list(beside("a", entrants(a="start"), rounds=1, steps=1, warmup=1))
