"""Plans beside the defaults: the cases, and what is concluded from races."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.base.errors import WorkbenchError
from workbench.bench.harness import run
from workbench.bench.plans import CASES, claims, recipes
from workbench.choices.execution import Native


def row(median: float | None, seconds: float, **knobs: object) -> dict[str, Any]:
    time = None if median is None else {"median": median, "min": median - 0.1, "max": median + 0.1}
    held = None if median is None else {"defaults": 400, "planned": 300}
    plan = {"knobs": knobs, "time": 1.1, "seconds": seconds, "note": ""}
    return {"plan": plan, "time": time, "memory_bytes": held}


FOUND = {
    "auto": {"a": row(None, 9.0), "b": row(1.05, 12.0, precision="fp32")},
    "memory": {"c": row(1.4, 31.0, recompute="layers")},
}


def test_twelve_recipes_begin_with_the_defaults() -> None:
    assert len(CASES["auto"]) == 12
    for kind in CASES:
        for name, recipe in recipes(kind).items():
            assert recipe.execution == Native(), name
            recipe.with_(execution={"kind": kind})


def test_verdicts_are_of_the_worst_case() -> None:
    found = {each["claim"]: (each["value"], each["target"], each["met"]) for each in claims(FOUND)}
    assert found["auto: time beside the defaults, at worst: b"] == (1.05, 1.03, False)
    assert found["memory: time beside the defaults, at worst: c"][0] == 1.4
    assert "calibration, at worst: memory, c" in found
    # The same program is neither faster nor slower.
    assert claims({"auto": {"a": row(None, 9.0)}})[0]["value"] == 1.0


def test_an_unknown_case_names_the_legal_ones() -> None:
    with pytest.raises(WorkbenchError, match="did you mean 'bert_tiny'"):
        run("plans", ["--only", "bert_tny", "--kinds", "memory"])
    with pytest.raises(WorkbenchError, match="unknown value 'gpt2_like'"):
        run("plans", ["--only", "gpt2_like", "--kinds", "memory"])  # a case of `auto` alone
