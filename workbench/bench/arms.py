"""What is compared: every method as a change to one recipe, in one table that reads from top to bottom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench import presets
from workbench.errors import RecipeError
from workbench.recipe import Recipe

BASELINE = "baseline"
"""Full depth, pre-norm, RoPE, ReLU^2, AdamW, rate decayed to zero inside the budget."""
TRIED = (0.5, 1.0, 2.0)
"""Factors on an arm's learning rate that are tried first; an optimum at an end is followed by two more at most."""


@dataclass(frozen=True)
class Arm:
    """One thing that is compared with the baseline.

    Attributes:
        name: what tables call it.
        section: heading it stands under.
        changes: to the base recipe, as ``Recipe.with_`` takes them; a function makes a value from the base.
        cards: choices whose cards show its result, as ``axis/kind``.
        tuned: its own learning rate is searched for, by the rule that serves the baseline; others take the baseline's.
        costs_as: an arm whose steps cost the same by construction, so that it need not be timed.
        against: what it is compared with.
        tokens: a fixed budget in tokens; None for the study's seconds of reference time.
        seeds: fresh ones; None for as many as the study has.
        unit: what the budget counts: tokens where the method itself decides how many a step has.
    """

    name: str
    section: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    cards: tuple[str, ...] = ()
    tuned: bool = False
    costs_as: str | None = None
    against: str = BASELINE
    tokens: int | None = None
    seeds: int | None = None
    unit: Literal["steps", "tokens"] = "steps"

    def recipe(self, base: Recipe) -> Recipe:
        """The base recipe with this arm's changes.

        Raises:
            RecipeError: a choice or knob that this version does not have, or a combination that cannot be trained.
        """
        return base.with_(name=self.name[:80], **self.resolved(base))

    def resolved(self, base: Recipe) -> dict[str, Any]:
        """The changes as plain data, made for ``base``."""
        return {path: value(base) if callable(value) else value for path, value in self.changes.items()}

    def unavailable(self, base: Recipe) -> str:
        """Why this version cannot run the arm; empty when it can."""
        try:
            self.recipe(base)
        except RecipeError as error:
            return str(error).splitlines()[0]
        return ""


@dataclass(frozen=True)
class StudySet:
    """A family of runs: one base recipe, one budget, the arms that are compared under it.

    Attributes:
        name: of the set.
        base: makes the recipe that every arm changes.
        steps: budget of a run: the reference time that the baseline takes for so many steps.
        tuning_share: share of it that a run of the search for a learning rate gets.
        seeds: fresh paired ones, from 1 on; the search uses seed 0.
        arms: in the order of the tables.
        note: what a reader must know about it.
    """

    name: str
    base: Callable[[], Recipe]
    steps: int
    tuning_share: float
    seeds: int
    arms: tuple[Arm, ...]
    note: str = ""


def small_base() -> Recipe:
    """``fast`` with 8 thin layers on one CPU thread: 500 steps end 1 nat below the unigram entropy."""
    return presets.fast().with_(
        name="study",
        architecture={"layers": 8, "width": 96, "heads": 2},
        execution={"threads": 1, "device": "cpu", "scalars_every": 25},
        budget={"evaluations": 1},
    )


def larger_base() -> Recipe:
    """BERT-base's size on a GPU (not yet run on one)."""
    return presets.bert_base().with_(
        name="study-larger",
        data={"sequence_length": 128, "batch_size": 256},
        execution={"device": "cuda", "micro_batch_size": None, "scalars_every": 25},
        budget={"evaluations": 1, "evaluation_tokens": 1 << 20},
    )


def _depth(kind: str) -> Arm:
    return Arm(kind, "Depth", {"depth": {"kind": kind}}, (f"depth/{kind}",), tuned=True)


def _blocks(name: str, **knobs: Any) -> Arm:
    return Arm(name, "Architecture", {"architecture": knobs}, ("architecture/pre_ln",))


def _post_ln(base: Recipe) -> dict[str, Any]:
    # Its own norm, positions and biases, but neither its dropout nor its head: the question is where the norms stand.
    shape = {name: getattr(base.architecture, name) for name in ("layers", "width", "heads")}
    return {"kind": "post_ln", **shape, "dropout": 0.0, "head": "linear"}


def _optimizer(kind: str, lr: float, **knobs: Any) -> Arm:
    # The same shape of the rate for all: a difference is to come from the step, not from the schedule.
    shape = {"kind": "warmup_hold_decay", "warmup": 0.05, "hold": 0.0}
    changes = {"optimizer": {"kind": kind, "lr": lr, "schedule": shape, **knobs}}
    return Arm(kind, "Optimizer", changes, (f"optimizer/{kind}",), tuned=True)


def _schedule(kind: str, *, name: str = "", **knobs: Any) -> Arm:
    changes = {"optimizer.schedule": {"kind": kind, **knobs}}
    return Arm(name or f"rate: {kind}", "Schedule", changes, (f"schedule/{kind}",), costs_as=BASELINE)


_DEPTH = (
    _depth("progressive_drop"),
    _depth("raptr"),
    _depth("stacking"),
    _depth("multi_stage"),
    _depth("freeze"),
    _depth("grow_width"),
)
_ARCHITECTURE = (
    _blocks("positions: learned", positions="learned"),
    _blocks("positions: sinusoidal", positions="sinusoidal"),
    _blocks("positions: alibi", positions="alibi"),
    _blocks("positions: tupe_a", positions="tupe_a"),
    _blocks("positions: tupe_r", positions="tupe_r"),
    _blocks("norm: layer_norm", norm="layer_norm"),
    Arm("post_ln", "Architecture", {"architecture": _post_ln}, ("architecture/post_ln",), tuned=True),
    _blocks("ffn: gelu", ffn="gelu"),
    # Two thirds of the inner width, so equally many parameters: the part itself sees to that.
    _blocks("ffn: geglu", ffn="geglu"),
    _blocks("ffn: swiglu", ffn="swiglu"),
    _blocks("bias: yes", bias=True),
    _blocks("head: untied", tied=False),
    _blocks("attention: local", local_window=16, global_every=3),
)
_OPTIMIZERS = (
    _optimizer("lans", 0.01, clip_norm=None),
    _optimizer("lamb", 0.01),
    _optimizer("stable_adamw", 3e-3, beta2=0.98),
    _optimizer("lion", 1e-3, weight_decay=0.1),
    _optimizer("muon", 0.01),
    _optimizer("soap", 3e-3),
    _optimizer("sophia", 1e-3),
    _optimizer("adafactor", 0.05),
)
_SCHEDULES = (
    _schedule("cosine", warmup=0.05),
    _schedule("warmup_stable_decay", name="rate: stable, then 1 - sqrt"),
    _schedule("warmup_stable_decay", name="rate: stable, then linear", shape="linear"),
    _schedule("one_cycle"),
    _schedule("polynomial", warmup=0.05),
    _schedule("inverse_sqrt", warmup=0.05),
)
_OBJECTIVE = tuple(
    Arm(
        f"masks: {rate:.0%} throughout",
        "Objective",
        {"objective.mask_rate": rate},
        ("objective/masked",),
    )
    for rate in (0.15, 0.30)
)
_DATA = (
    Arm(
        "batch_ramp",
        "Batch and length",
        {"data.batch_size": {"kind": "stages", "values": [8, 16, 24], "until": [1 / 3, 2 / 3]}},
        ("batch_rule/as_scheduled",),
    ),
    Arm(
        "length_warmup",
        "Batch and length",
        {"data.sequence_length": {"kind": "stages", "values": [16, 32, 48, 64], "until": [0.1, 0.2, 0.3]}},
        ("batch_rule/as_scheduled",),
    ),
    Arm(
        "two phases of length",
        "Batch and length",
        {
            "data.sequence_length": {"kind": "stages", "values": [32, 64], "until": [0.7]},
            "data.batch_size": {"kind": "stages", "values": [32, 16], "until": [0.7]},
        },
        ("batch_rule/as_scheduled",),
    ),
    # How large its batches become is decided as it trains: only tokens can be a budget.
    Arm(
        "simigrad",
        "Batch and length",
        {"data.batch_rule": {"kind": "simigrad"}},
        ("batch_rule/simigrad",),
        unit="tokens",
    ),
)

LARGE_BATCH_TOKENS = 1 << 19
LARGE_BATCHES = (128, 512)
"""Rows of 64 tokens per step: 64 and 16 steps in a budget of 2^19 tokens."""


def _large_batches() -> tuple[Arm, ...]:
    arms = []
    starts = {"adamw": 3e-3, "lamb": 0.02, "lans": 0.02}
    for rows in LARGE_BATCHES:
        for kind, lr in starts.items():
            shape = {"kind": "warmup_hold_decay", "warmup": 0.2}
            optimizer = {"kind": kind, "lr": lr, "schedule": shape, **({"beta2": 0.98} if kind == "adamw" else {})}
            name = f"{kind} at {rows} rows"
            changes = {
                "optimizer": optimizer,
                "data.batch_size": rows,
                # Parts of one size in all of them: steps differ in nothing but their number of parts.
                "execution.micro_batch_size": min(rows, 32),
            }
            arms.append(
                Arm(
                    name, f"Large batches: {rows} rows", changes, (f"optimizer/{kind}",), tuned=True,
                    against=f"adamw at {rows} rows", tokens=LARGE_BATCH_TOKENS, unit="tokens", seeds=3,
                )
            )  # fmt: skip
    return tuple(arms)


_BASELINE = Arm(BASELINE, "Baseline", {}, ("optimizer/adamw", "depth/full"), tuned=True)

SMALL = StudySet(
    "small", small_base, steps=750, tuning_share=0.5, seeds=3,
    # Optimizers first: they do not wait for the baseline's learning rate.
    arms=(_BASELINE, *_OPTIMIZERS, *_large_batches(), *_DEPTH, *_ARCHITECTURE, *_SCHEDULES, *_DATA, *_OBJECTIVE),
)  # fmt: skip
LARGER = StudySet(
    "larger", larger_base, steps=10_000, tuning_share=0.25, seeds=3,
    arms=(_BASELINE, *_OPTIMIZERS, *_DEPTH),
    note="not yet run on a GPU",
)  # fmt: skip
SETS = {study.name: study for study in (SMALL, LARGER)}
