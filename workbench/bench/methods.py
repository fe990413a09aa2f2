"""Measure the saving of each method per step and per token (claim 1): contenders alternate round by round in one run.

Same recipe but for the method, whole schedules squeezed into the timed steps, ratios taken within rounds. Compilation
is over before the first timed step and in no ratio; what the passage from one stage to the next costs stands apart.
Targets are those that the methods' authors, or the cost model, lead one to expect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.base.errors import check_known
from workbench.bench.compared_methods import all_methods, depth_and_optimizers, larger_base, small_base
from workbench.bench.result import verdict
from workbench.bench.step_costs import step_costs
from workbench.bench.table import Options
from workbench.recipes.recipe import Recipe

PARTS = ("claims", "methods")
"""Parts that ``--only`` may name: the cost of depth methods on 12 layers, of every method."""
EQUAL_STAGES, DEFAULT_STAGES = "multi_stage, equal stages", "multi_stage, default stages"
FROZEN = (3, 6, 9)
"""Layers of 12 that are frozen where the forecast of a frozen layer's cost is put to the test."""


def claims_base(gpu: bool) -> Recipe:
    """Return 12 layers, x 256 on one CPU thread, BERT-base on a GPU; 15% masks throughout:
    every step costs the same.
    """
    if gpu:
        return larger_base().with_(objective={"mask_rate": 0.15})
    return small_base().with_(architecture={"layers": 12, "width": 256, "heads": 4}, objective={"mask_rate": 0.15})


def claim_recipes(base: Recipe) -> dict[str, Recipe]:
    """Return contenders of the claims on depth, by name; ``base`` itself is the baseline."""
    layers, half = base.architecture.layers, base.architecture.layers // 2
    # The embedding trains on, through its tied head: its cost then is the same with and without frozen layers.
    frozen = {
        f"{k} of {layers} frozen": base.with_(depth={"kind": "freeze", "share": k / layers, "embedding": "trains"})
        for k in (*FROZEN, layers)
    }
    return {
        # The decay per step is so steep that the limit is reached at once.
        "progressive_drop at its limit": base.with_(depth={"kind": "progressive_drop", "theta": 0.5, "gamma": 1000.0}),
        "progressive_drop, whole schedule": base.with_(depth={"kind": "progressive_drop", "theta": 0.5}),
        # Equal stages, and the default ones, which are long while a step is cheap: chosen for this very number.
        EQUAL_STAGES: base.with_(depth={"kind": "multi_stage", "shares": (1, 1, 1, 1)}),
        DEFAULT_STAGES: base.with_(depth="multi_stage"),
        f"{half} layers": base.with_(architecture={"layers": half}),
        **frozen,
    }


def forecast_frozen(arms: Mapping[str, Mapping[str, Any]], layers: int) -> dict[str, dict[str, float]]:
    """Return seconds of a step with frozen layers as c + f F + b B, over the baseline's: forecast, measured,
    their ratio.

    F and B, seconds of a layer's forward and backward pass with all that belongs to it, come from three contenders: all
    layers, half as many layers, and all layers frozen. Those with some layers frozen take no part in it.

    Args:
        arms: as :func:`~workbench.bench.step_costs.step_costs` gives them, in ratios to the full model's step.
    """
    half = layers // 2
    none, shallow = arms[f"{layers} of {layers} frozen"]["ratio"], arms[f"{half} layers"]["ratio"]
    backward = (1.0 - none) / layers
    forward = (1.0 - shallow) / (layers - half) - backward
    fixed = 1.0 - layers * (forward + backward)
    found = {}
    for k in FROZEN:
        forecast, measured = (
            fixed + layers * forward + (layers - k) * backward,
            arms[f"{k} of {layers} frozen"]["ratio"],
        )
        found[f"{k} of {layers} frozen"] = {
            "forecast": forecast,
            "measured": measured,
            "error": measured / forecast - 1,
        }
    return found


def verdicts(arms: Mapping[str, Mapping[str, Any]], layers: int) -> list[dict[str, Any]]:
    """Return the verdicts on depth methods, from the ratios of :func:`claim_recipes`; all shares are fractions."""
    found = []
    for name in ("progressive_drop at its limit", "progressive_drop, whole schedule"):
        arm = arms[name]
        found.append(verdict(f"{name}: time per token saved", 1 - arm["token_ratio"], ">=", 0.20, "share", 0.24))
        found.append(verdict(f"{name}: useful FLOPs saved", 1 - arm["flops_ratio"], ">=", 0.25, "share"))
    for name in (EQUAL_STAGES, DEFAULT_STAGES):
        found.append(verdict(f"{name}: more tokens/s", 1 / arms[name]["token_ratio"] - 1, ">=", 0.90, "share", 1.10))
    for name, each in forecast_frozen(arms, layers).items():
        found.append(verdict(f"{name}: |time per step over forecast - 1|", abs(each["error"]), "<=", 0.10, "share"))
    return found


def measure(
    *, gpu: bool, parts: tuple[str, ...], only: tuple[str, ...] = (), segments: int, steps: int,
) -> dict[str, Any]:  # fmt: skip
    """Run the chosen parts.

    Args:
        only: names or sections of methods for the part "methods"; empty means all.
    """
    result: dict[str, Any] = {
        "protocol": f"contenders alternate, {segments} rounds of {steps} steps, one process each; ratios within rounds"
    }
    if "claims" in parts:
        base = claims_base(gpu)
        layers = base.architecture.layers
        result["claims"] = found = step_costs(base, claim_recipes(base), segments=segments, steps=steps)
        result["claims_recipe"] = base.to_dict()
        failed = {name: arm["error"] for name, arm in found["arms"].items() if "error" in arm}
        if not failed:
            result["verdicts"] = verdicts(found["arms"], layers)
            result["frozen"] = forecast_frozen(found["arms"], layers)
    if "methods" in parts:
        base = larger_base() if gpu else small_base()
        sections = depth_and_optimizers() if gpu else all_methods(base)
        legal = [*PARTS, *sections, *(each for methods in sections.values() for each in methods)]
        for name in only:
            check_known("--only", name, legal)
        chosen = {
            name: base.with_(name=name, **changes)
            for section, methods in sections.items()
            for name, changes in methods.items()
            if not only or {name, section} & set(only)
        }
        result["methods"] = step_costs(base, chosen, segments=segments, steps=steps)
        result["methods_recipe"] = base.to_dict()
    return result


def measured(options: Options) -> dict[str, Any]:
    """Measure what the options ask for."""
    parts = tuple(part for part in PARTS if part in options.only)
    methods = tuple(name for name in options.only if name not in PARTS)
    return measure(
        gpu=options.gpu, parts=parts or (("methods",) if methods else PARTS), only=methods, segments=options.rounds,
        steps=options.steps,
    )  # fmt: skip
