"""Plans beside the defaults: the cases, and what is concluded from races."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from workbench.base.errors import WorkbenchError
from workbench.bench.plans import CASES, claims, main, recipes, table
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


def test_claims_name_the_worst_case() -> None:
    found = {each["claim"]: each for each in claims(FOUND)}
    assert found["auto: time beside the defaults"] == {
        "claim": "auto: time beside the defaults", "worst": "b", "value": 1.05, "target": 1.03,
    }  # fmt: skip
    assert found["memory: time beside the defaults"]["value"] == 1.4
    assert found["calibration, seconds"]["worst"] == "memory, c"
    # The same program is neither faster nor slower.
    assert claims({"auto": {"a": row(None, 9.0)}})[0]["value"] == 1.0


def test_the_table_tells_plans_and_the_same_program_apart() -> None:
    out = io.StringIO()
    Console(file=out, width=200).print(table(FOUND))
    said = out.getvalue()
    assert "same program" in said
    assert "recompute layers" in said
    assert "0.75x" in said


def test_an_unknown_case_names_the_legal_ones() -> None:
    with pytest.raises(WorkbenchError, match="did you mean 'bert_tiny'"):
        main(["--only", "bert_tny", "--kinds", "memory"])
