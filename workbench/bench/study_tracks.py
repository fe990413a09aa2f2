"""Define the comparisons of the study of methods: baselines, and sections of methods, each a change to one of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.base.errors import RecipeError
from workbench.bench.compared_methods import Methods, all_methods, as_published, depth_and_optimizers
from workbench.bench.presets import TUNING_SEED
from workbench.recipes import presets
from workbench.recipes.recipe import Recipe

BASELINE = "baseline"
_NOT_IN_A_NAME = re.compile(r"[^\w .+-]")
PUBLISHED = "Depth as published"
"""The section of depth methods at the schedules of their papers, compiled, so that what compiling takes counts."""


@dataclass(frozen=True)
class Track:
    """A baseline, and the methods that are held against it.

    Attributes:
        base: tuned before anything else.
        methods: by section and name, each as changes to ``base``.
        before: what is trained first, once per seed; all arms begin with its weights. None: with those of their seed.
        instead: by section, changes to ``base`` that hold for all of its arms.
    """

    base: Recipe
    methods: Methods
    before: Recipe | None = None
    instead: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def of(self, section: str) -> Track:
        """Return the track with the baseline of a section."""
        return replace(self, base=self.base.with_(**self.instead.get(section, {})))


def _causal_model(steps: int, rows: int, **shape: int) -> Recipe:
    """Return the quickstart's model of another shape, on rows of 64 tokens and one CPU thread."""
    return presets.get("quickstart").with_(
        data={"batch_size": rows, "sequence_length": 64},
        architecture=shape,
        execution={"threads": 1, "device": "cpu"},
        budget=f"{steps} steps",
        seed=TUNING_SEED,
    )


def causal(steps: int) -> Track:
    """Return the main ranking: a causal model leaves the plateau at once. 8 layers x 96, 16 rows of 64 tokens,
    one thread.
    """
    base = _causal_model(steps, rows=16, layers=8, width=96, heads=2)
    found = all_methods(base)
    # Masks belong to masked models, and these positions let every token see the right.
    del found["Objective"]
    found |= {"Schedule": schedules(), PUBLISHED: as_published()}
    return Track(base, found, instead={PUBLISHED: {"execution": {"compile": True}}})


def large_batch(steps: int) -> Track:
    """Return layerwise and matrix optimizers where they were meant to be: 4 layers x 256, 4,096 tokens per step.

    Compiled in bf16 with plain attention, a step took 0.27 s of an Intel core with AMX; eager in fp32, 1.18 s.
    """
    base = _causal_model(steps, rows=64, layers=4, width=256, heads=4).with_(
        execution={"compile": True, "precision": "bf16", "attention": "plain"}
    )
    return Track(base, {"Optimizer": depth_and_optimizers()["Optimizer"]})


def masked(steps: int) -> Track:
    """Return the track for masks, with a model that reads context: ``fast`` on one thread, after the plateau.

    Its rate and steps are those that end 1.2 nats below word frequencies; 3e-3 after as many is still on the plateau.
    """
    before = presets.fast().with_(
        optimizer={"lr": 1e-3}, execution={"threads": 1, "device": "cpu"}, budget="600 steps", seed=TUNING_SEED
    )
    base = before.with_(budget=f"{steps} steps", objective={"mask_rate": 0.15})
    linear = {"kind": "linear", "start": 0.3, "end": 0.15}
    return Track(base, {"Objective": {
        "masks 30% throughout": {"objective.mask_rate": 0.3},
        "masks 30% falling to 15%": {"objective.mask_rate": linear},
        "corruption all_mask": {"objective.corruption": "all_mask"},
    }}, before)  # fmt: skip


def schedules() -> dict[str, dict[str, Any]]:
    """Return shapes of the learning rate beside a rise and a straight fall."""
    shapes: dict[str, dict[str, Any]] = {
        "rate held, then decayed": {"kind": "warmup_hold_decay", "hold": 0.6, "warmup": 0.1},
        "cosine": {"kind": "cosine", "warmup": 0.1},
        "polynomial": {"kind": "polynomial", "warmup": 0.1},
        "inverse_sqrt": {"kind": "inverse_sqrt", "warmup": 0.1},
        "one_cycle": {"kind": "one_cycle"},
        "warmup_stable_decay": {"kind": "warmup_stable_decay", "warmup": 0.1},
    }
    return {name: {"optimizer.schedule": shape} for name, shape in shapes.items()}


TRACKS: dict[str, tuple[Callable[[int], Track], int]] = {
    "causal": (causal, 600),
    "large_batch": (large_batch, 250),
    "masked": (masked, 400),
}
"""By name: how it is built, and its steps."""


def arms_of(track: Track, section: str) -> tuple[dict[str, Recipe], dict[str, str]]:
    """Return the recipes of a section by name, and why some of its methods cannot be in this track."""
    arms, refused = {}, {}
    for name, changes in track.methods[section].items():
        arm = _NOT_IN_A_NAME.sub("", name.replace("%", " percent"))
        try:
            recipe = track.of(section).base.with_(**changes)
            recipe.check_whole()
        except RecipeError as error:
            refused[arm] = str(error)
        else:
            arms[arm] = recipe
    return arms, refused
