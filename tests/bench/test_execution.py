"""Knobs of the engine side by side: what is compared follows from the declarations; a real race on a tiny model."""

from __future__ import annotations

import math
from typing import Any, get_args

import pytest

from workbench.base.errors import WorkbenchError
from workbench.bench import execution, rounds
from workbench.bench.execution import EXACT, KNOBS, LEFT_OUT, PLAIN, ROUNDED, Knob, contenders, plain
from workbench.bench.rounds import SpeedRounds
from workbench.choices.execution import Execution, Native
from workbench.recipes.recipe import Recipe


def test_every_knob_of_the_native_engine_and_every_value_is_compared_or_left_out() -> None:
    assert set(KNOBS) | set(LEFT_OUT) == set(Native.model_fields) - set(Execution.model_fields) - {"kind"}
    for name, each in KNOBS.items():
        annotation = Native.model_fields[name].annotation
        values = (False, True) if annotation is bool else get_args(annotation)
        assert sorted(map(str, (each.plain, *each.values))) == sorted(map(str, values)), "a value that nobody measures"
        Native(**{name: each.plain})


def test_knobs_are_added_in_their_order_and_what_the_device_lacks_is_left_out(tiny: Recipe) -> None:
    knobs = {
        "head": Knob("all", ("labelled",), "layout"),
        "precision": Knob("fp32", ("tf32", "bf16", "fp16"), tolerance=ROUNDED),
        "compile": Knob(False, (True,)),
        "compile_scope": Knob("blocks", ("step",), "memory", needs={"compile": True}),
    }
    base = plain(tiny.with_(execution={"device": "cpu"}), knobs)
    assert (base.execution.head, base.execution.precision, base.execution.compile) == ("all", "fp32", False)
    found = contenders(base, knobs)
    assert found.chains["tokens_per_second"] == [
        ("", PLAIN), ("head: labelled", "head=labelled"),
        # The last value that works: fp16 needs a GPU.
        ("precision: bf16", "head=labelled, precision=bf16"),
        ("compile: True", "head=labelled, precision=bf16, compile=true"),
    ]  # fmt: skip
    assert set(found.skipped) >= {"precision=tf32", "precision=fp16"}
    assert "CUDA" in found.skipped["precision=fp16"]
    assert found.changes["compile=true"] == {"compile": True}
    assert found.changes["compile=true, compile_scope=step"] == {"compile": True, "compile_scope": "step"}
    assert found.tolerances["compile=true"] == EXACT
    assert found.tolerances["head=labelled, precision=bf16"] == ROUNDED


@pytest.mark.usefixtures("turns_here")
def test_a_real_race_of_the_layout(tiny: Recipe) -> None:
    tiny = tiny.with_(architecture={"dropout": 0.0}, execution={"device": "cpu", "threads": 1})
    result = execution.measure(tiny, rounds=2, steps=2, warmup=2, only=["head"])
    rows = result["contenders"]
    assert set(rows) == {PLAIN, "head=labelled"}
    assert rows["head=labelled"]["execution"] == {"head": "labelled"}
    for row in rows.values():
        assert len(row["readings"]) == 2
        assert len(row["losses"]) == 2 + 2 * 2
        assert row["memory_bytes"] > 0
        assert row["within"]
    assert rows[PLAIN]["loss_difference"] == 0
    found = result["waterfall"]["tokens_per_second"]
    assert [step["what"] for step in found["steps"]] == ["head: labelled"]
    assert found["whole"] == pytest.approx(rows["head=labelled"]["faster_than_plain"]["median"])


def told(losses: dict[str, list[float]], rates: dict[str, float]) -> Any:
    """A race that tells what it is told."""

    def take_rounds(entrants: dict[str, Any], *, rounds: int, **_: Any) -> SpeedRounds:
        ready = {
            name: {
                "warmup": {"losses": losses.get(name, [5.0, 4.0])}, "memory_bytes": 10, "compile_wall_seconds": 0.0,
                "attention": "plain", "threads": 1,
            }
            for name in entrants
        }  # fmt: skip
        answer = {name: {"tokens": rates.get(name, 1.0), "seconds": 1.0, "losses": []} for name in entrants}
        return SpeedRounds(ready, {name: [each] * rounds for name, each in answer.items()}, {})

    return take_rounds


def test_losses_that_drift_and_claims_are_told(tiny: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    both = "head=labelled, padding=removed"
    last = f"{both}, precision=bf16, compile=true"
    speeds = {both: 2.0, f"{both}, precision=bf16": 3.0, last: 6.0}
    monkeypatch.setattr(
        rounds, "take_rounds", told({"compile=true": [5.0, 4.01], "precision=bf16": [5.0, 4.01]}, speeds)
    )
    only = ["head", "padding", "precision", "compile"]
    result = execution.measure(tiny.with_(execution={"device": "cpu"}), rounds=3, steps=1, warmup=2, only=only)
    assert result["contenders"]["compile=true"]["within"] is False, "compiling has no right to other digits"
    assert result["contenders"]["precision=bf16"]["within"] is True
    claims = {each["claim"].partition("beside ")[2]: (each["value"], each["target"]) for each in result["verdicts"]}
    assert claims == {
        "plain fp32": (6.0, 2.0), "eager fp32 of the same layout": (3.0, 2.0),
        "plain at the same precision": (6.0, 1.45), "eager of the same precision and layout": (2.0, 1.45),
    }  # fmt: skip
    steps = result["waterfall"]["tokens_per_second"]["steps"]
    assert math.prod(step["factor"] for step in steps) == pytest.approx(6.0)


def test_an_unknown_knob_names_the_legal_ones(tiny: Recipe) -> None:
    with pytest.raises(WorkbenchError, match=r"--only: unknown value 'precisoin'.*did you mean 'precision'"):
        execution.measure(tiny, rounds=1, steps=1, warmup=1, only=["precisoin"])


def test_no_round_is_refused_at_once(tiny: Recipe) -> None:
    with pytest.raises(WorkbenchError, match=r"--rounds: 0 rounds.*use 1 or more"):
        execution.measure(tiny, rounds=0, steps=1, warmup=1)
