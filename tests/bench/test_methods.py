"""The arithmetic of claims: what targets are compared with, and the forecast of a frozen layer."""

from __future__ import annotations

import pytest

from workbench import presets
from workbench.base.errors import WorkbenchError
from workbench.bench.harness import run
from workbench.bench.methods import (
    DEFAULT_STAGES,
    EQUAL_STAGES,
    FROZEN,
    claim_recipes,
    claims_base,
    forecast_frozen,
    verdicts,
)
from workbench.bench.result import verdict
from workbench.choices.progress import Progress

# A step of 1.0: 0.1 fixed, 12 layers of 0.025 forward and 0.05 backward.
COSTS = {
    "6 layers": {"ratio": 0.1 + 6 * 0.075}, "12 of 12 frozen": {"ratio": 0.1 + 12 * 0.025},
    "3 of 12 frozen": {"ratio": 0.1 + 12 * 0.025 + 9 * 0.05}, "6 of 12 frozen": {"ratio": 0.1 + 12 * 0.025 + 6 * 0.05},
    "9 of 12 frozen": {"ratio": (0.1 + 12 * 0.025 + 3 * 0.05) * 1.25},
}  # fmt: skip


def test_the_forecast_follows_layers_forward_and_backward() -> None:
    found = forecast_frozen(COSTS, 12)
    assert found["3 of 12 frozen"]["forecast"] == pytest.approx(0.85)
    assert found["6 of 12 frozen"]["error"] == pytest.approx(0.0)
    assert found["9 of 12 frozen"]["error"] == pytest.approx(0.25)


def test_verdicts_name_what_was_met_and_what_was_missed() -> None:
    limit = {"token_ratio": 0.77, "flops_ratio": 0.74}
    equal, default = {"token_ratio": 0.55}, {"token_ratio": 0.5}
    names = ("progressive_drop at its limit", "progressive_drop, whole schedule", EQUAL_STAGES, DEFAULT_STAGES)
    found = verdicts({**COSTS, **dict(zip(names, (limit, limit, equal, default), strict=True))}, 12)
    met = {each["claim"]: each["met"] for each in found}
    assert met["progressive_drop at its limit: time per token saved"]
    assert met["multi_stage, default stages: more tokens/s"], "twice the tokens per second is +100%"
    assert not met["multi_stage, equal stages: more tokens/s"]
    assert not any("compilation" in claim for claim in met), "it is over before the first timed step"
    assert [met[f"{k} of 12 frozen: |time per step over forecast - 1|"] for k in FROZEN] == [True, True, False]
    assert verdict("x", 0.2, ">=", 0.2)["met"]
    assert not verdict("x", 1.31, "<=", 1.3)["met"]


def test_contenders_are_what_their_names_say() -> None:
    base = claims_base(gpu=False)
    recipes = claim_recipes(base)
    budget = base.with_(budget="100 steps").budget

    def plan(name: str, fraction: float):  # type: ignore[no-untyped-def]
        recipe = recipes[name]
        progress = Progress(step=int(fraction * 100), tokens=0, seconds=0.0, budget=budget)
        return recipe.depth.plan(recipe.architecture.layers, progress, 0)

    assert base.architecture.layers == 12
    for k in FROZEN:
        assert plan(f"{k} of 12 frozen", 0.5).trains == (False,) * k + (True,) * (12 - k)
    assert plan("12 of 12 frozen", 0.0).trains == (False,) * 12
    # At the limit from the second step on: the last of L layers is kept with probability theta.
    assert plan("progressive_drop at its limit", 0.02).keep[-1] == pytest.approx(0.5)
    assert plan("progressive_drop, whole schedule", 0.0).keep[-1] == 1.0
    assert recipes[DEFAULT_STAGES].depth == presets.mslt().depth
    starts = recipes[EQUAL_STAGES].depth.starts()
    assert starts == pytest.approx((0.0, 0.2, 0.4, 0.6, 0.8)), "four equal stages and the joint one"
    assert [plan(EQUAL_STAGES, start).layers for start in starts] == [3, 6, 9, 12, 12]


def test_a_method_that_nobody_knows_is_refused_before_anything_trains() -> None:
    with pytest.raises(WorkbenchError, match=r"--only: unknown value 'nosuch'.*legal"):
        run("methods", ["--only", "nosuch"])
