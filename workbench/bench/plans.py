"""Measure planned executions: `auto` and `memory` beside the native engine's defaults, over varied recipes.

Plans are calibrated anew. Where a plan is the defaults themselves, both are the same program, and nothing is raced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.base.errors import check_known
from workbench.bench.contender import TRAINER, note
from workbench.bench.forecast_cases import cases
from workbench.bench.harness import rounds_of
from workbench.bench.result import verdict
from workbench.bench.rounds import Entrant, ratios, take_rounds
from workbench.bench.table import Options
from workbench.choices.data.prepare import prepare
from workbench.choices.execution.autotune import SECONDS, Planned, calibrate
from workbench.recipes.recipe import Recipe

MANY_ROWS = "bert_tiny, 128 rows"
CASES = {
    "auto": (
        "fast", "fast, width 64, 8 layers", "fast, 4 rows of 32", "fast, rows of 256", "fast, lans", "fast, muon",
        "bert_tiny", "gpt2_like", "llama_like", "modernbert_like", "pld", "transformers bert",
    ),
    "memory": ("fast, rows of 256", "bert_tiny", "llama_like", MANY_ROWS),
}  # fmt: skip
"""Names of cases of ``forecast_cases.py``, by execution; the last one keeps more than its model takes."""
Found = Mapping[str, dict[str, dict[str, Any]]]
"""Readings of :func:`measure`, by execution and case."""
SLOWER = 0.03
"""Share by which `auto` may be slower than the defaults."""


def recipes(kind: str) -> dict[str, Recipe]:
    """Return the cases of an execution by name, under the native engine's defaults."""
    known = cases()
    known[MANY_ROWS] = known["bert_tiny"].with_(data={"batch_size": 128})
    # A budget in seconds: whether compilation pays for twelve steps is not the question here.
    changes = {"threads": None, "compile": True, "attention": "auto", "precision": "bf16"}
    return {
        name: known[name].with_(execution={"kind": "native", **changes}, budget={"amount": 600, "unit": "seconds"})
        for name in CASES[kind]
    }


def measure(kind: str, recipe: Recipe, *, rounds: int, steps: int, warmup: int) -> dict[str, Any]:
    """Plan a recipe and race the plan against the defaults.

    Returns:
        ``plan``; ``time`` (spread of ratios to the defaults by round, None where the plan is the defaults);
        ``memory_bytes`` of both.
    """
    planned = recipe.with_(execution={"kind": kind})
    assert isinstance(planned.execution, Planned)
    prepare(recipe.data, say=note)
    plan = calibrate(planned, note)
    row: dict[str, Any] = {"plan": plan.to_dict(), "time": None, "memory_bytes": None}
    if plan.knobs:
        settled = recipe.with_(execution=planned.execution.settled(plan.knobs))
        entrants = {
            name: Entrant(TRAINER, {"recipe": each.to_dict()})
            for name, each in {"defaults": recipe, "planned": settled}.items()
        }
        held = take_rounds(entrants, rounds=rounds, steps=steps, warmup=warmup)
        rates = held.rates()
        row["time"] = ratios(rates["defaults"], rates["planned"])
        row["memory_bytes"] = {name: held.ready[name]["memory_bytes"] for name in entrants}
    return row


def claims(found: Found) -> list[dict[str, Any]]:
    """Return the verdicts on the plans, each of its worst case."""
    times = {
        kind: {name: row["time"]["median"] if row["time"] else 1.0 for name, row in rows.items()}
        for kind, rows in found.items()
    }
    seconds = {f"{kind}, {name}": row["plan"]["seconds"] for kind, rows in found.items() for name, row in rows.items()}
    price = Recipe(execution="memory").execution.most_time
    asked = (
        ("auto: time beside the defaults", times.get("auto"), 1 + SLOWER, "x"),
        ("memory: time beside the defaults", times.get("memory"), price, "x"),
        ("calibration", seconds, SECONDS, "s"),
    )
    return [
        verdict(f"{claim}, at worst: {max(values, key=values.__getitem__)}", max(values.values()), "<=", target, unit)
        for claim, values, target, unit in asked
        if values
    ]


def measured(options: Options) -> dict[str, Any]:
    """Measure what the options ask for."""
    known = {name for kind in options.kinds for name in CASES[kind]}
    for name in options.only or ():
        check_known("--only", name, known)
    found: Found = {kind: {} for kind in options.kinds}
    for kind in options.kinds:
        chosen = {name: each for name, each in recipes(kind).items() if options.only is None or name in options.only}
        for name, recipe in chosen.items():
            note(f"{kind}: {name}")
            found[kind][name] = measure(kind, recipe, **rounds_of(options))
    return {
        "protocol": f"{options.rounds} alternating rounds of {options.steps} steps after {options.warmup}",
        "plans": found,
        "verdicts": claims(found),
    }
