"""Measure the saving of each method per step and per token (claim 1): contenders alternate round by round in one run.

Same recipe but for the method, whole schedules squeezed into the timed steps, ratios taken within rounds. Compilation
is over before the first timed step and in no ratio; what the passage from one stage to the next costs stands apart.
Targets are those that the methods' authors, or the cost model, lead one to expect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from workbench.bench.compared_methods import all_methods, depth_and_optimizers, larger_base, small_base
from workbench.bench.harness import Bench, Options
from workbench.bench.step_costs import SEGMENTS, STEPS, step_costs
from workbench.recipes.recipe import Recipe

PARTS = ("claims", "methods")
"""Parts that ``--only`` may name: the cost of depth methods on 12 layers, of every method."""
EQUAL_STAGES, DEFAULT_STAGES = "multi_stage, equal stages", "multi_stage, default stages"
FROZEN = (3, 6, 9)
"""Layers of 12 that are frozen where the forecast of a frozen layer's cost is put to the test."""


@dataclass(frozen=True)
class Verdict:
    """A claim, what was measured, and whether the target was met.

    Attributes:
        target: what it is to reach (``>=``) or to stay below (``<=``), as ``sign`` says.
        goal: of ambition; None for none.
    """

    claim: str
    value: float
    sign: str
    target: float
    goal: float | None = None

    @property
    def met(self) -> bool:
        """Return True if the target was reached."""
        return self.value >= self.target if self.sign == ">=" else self.value <= self.target


def claims_base(gpu: bool) -> Recipe:
    """12 layers, x 256 on one CPU thread, BERT-base on a GPU; 15% masks throughout: every step costs the same."""
    if gpu:
        return larger_base().with_(objective={"mask_rate": 0.15})
    return small_base().with_(architecture={"layers": 12, "width": 256, "heads": 4}, objective={"mask_rate": 0.15})


def claim_recipes(base: Recipe) -> dict[str, Recipe]:
    """Contenders of the claims on depth, by name; ``base`` itself is the baseline."""
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
    """Seconds of a step with frozen layers as c + f F + b B, over the baseline's: forecast, measured, their ratio.

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


def verdicts(arms: Mapping[str, Mapping[str, Any]], layers: int) -> list[Verdict]:
    """The claims on depth methods, from the ratios of :func:`claim_recipes`; all shares are fractions."""
    limit, whole = arms["progressive_drop at its limit"], arms["progressive_drop, whole schedule"]
    mslt, chosen = arms[EQUAL_STAGES], arms[DEFAULT_STAGES]
    found = [
        Verdict("progressive_drop at its limit: time per token saved", 1 - limit["token_ratio"], ">=", 0.20, 0.24),
        Verdict("progressive_drop at its limit: useful FLOPs saved", 1 - limit["flops_ratio"], ">=", 0.25),
        Verdict("progressive_drop, whole schedule: time per token saved", 1 - whole["token_ratio"], ">=", 0.20, 0.24),
        Verdict("progressive_drop, whole schedule: useful FLOPs saved", 1 - whole["flops_ratio"], ">=", 0.25),
        Verdict(f"{EQUAL_STAGES}: more tokens/s", 1 / mslt["token_ratio"] - 1, ">=", 0.90, 1.10),
        Verdict(f"{DEFAULT_STAGES}: more tokens/s", 1 / chosen["token_ratio"] - 1, ">=", 0.90, 1.10),
    ]
    for name, each in forecast_frozen(arms, layers).items():
        found.append(Verdict(f"{name}: |time per step over forecast - 1|", abs(each["error"]), "<=", 0.10))
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
            result["verdicts"] = [{**asdict(v), "met": v.met} for v in verdicts(found["arms"], layers)]
            result["frozen"] = forecast_frozen(found["arms"], layers)
    if "methods" in parts:
        base = larger_base() if gpu else small_base()
        sections = depth_and_optimizers() if gpu else all_methods(base)
        chosen = {
            name: base.with_(name=name, **changes)
            for section, methods in sections.items()
            for name, changes in methods.items()
            if not only or {name, section} & set(only)
        }
        result["methods"] = step_costs(base, chosen, segments=segments, steps=steps)
        result["methods_recipe"] = base.to_dict()
    return result


def show(result: Mapping[str, Any], console: Console, _path: Path | None = None) -> None:
    """Tables of a result of :func:`measure`."""
    for part in ("claims", "methods"):
        if part not in result:
            continue
        heads = ("s/step", "s/token", "FLOPs/token", "range of s/step by round", "transitions, in the baseline's steps")
        table = Table("contender", *heads, title=part)
        for name, arm in result[part]["arms"].items():
            if "error" in arm:
                table.add_row(name, "failed", "", "", arm["error"][:80], "")
                continue
            low, high = min(arm["by_segment"]), max(arm["by_segment"])
            figures = (f"{arm[ratio]:.3f}" for ratio in ("ratio", "token_ratio", "flops_ratio"))
            passed = f"{arm['transition_steps']:.1f} in {arm['transitions']}" if arm.get("transitions") else ""
            table.add_row(name, *figures, f"{low:.2f} to {high:.2f}", passed)
        console.print(table)
        busy = max(result[part]["busy"], default=0.0)
        # Twice the CPU time has passed: others were at work, and ratios have a wider spread than they need to.
        if busy > 1.5:
            console.print(f"the machine was busy: up to {busy:.1f} s passed per second of CPU time", markup=False)
    table = Table("claim", "measured", "target", "goal", "verdict", title="verdicts")
    for each in result.get("verdicts", []):
        goal = f"{each['goal']:.1%}" if each["goal"] is not None else ""
        verdict = "target met" if each["met"] else "target missed"
        table.add_row(each["claim"], f"{each['value']:.1%}", f"{each['sign']} {each['target']:.1%}", goal, verdict)
    console.print(table)


def _measured(options: Options) -> dict[str, Any]:
    parts = tuple(part for part in PARTS if part in options.only)
    methods = tuple(name for name in options.only if name not in PARTS)
    return measure(
        gpu=options.gpu, parts=parts or (("methods",) if methods else PARTS), only=methods, segments=options.rounds,
        steps=options.steps,
    )  # fmt: skip


main = Bench(
    "methods", __doc__, _measured, show, rounds=SEGMENTS, steps=STEPS, out=("--results", "docs/results"),
    saved_as="methods-speed",
    options={
        "--only": {
            "action": "append", "default": [], "metavar": "NAME",
            "help": f"{', '.join(PARTS)}; or methods, or their sections",
        },
        "--gpu": {"action": "store_true", "help": "sizes for a GPU, on it (not yet run on a GPU)"},
    },
).main  # fmt: skip
