"""Freezing from below: the lowest layers stop training while the run goes on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

from workbench.choices.choice import Problem, knob
from workbench.choices.depth.plan import Depth, LayerPlan
from workbench.choices.progress import Progress
from workbench.choices.schedules.schedule import Scheduled, at, scheduled_knob
from workbench.choices.schedules.stages import Stages


class Freeze(Depth):
    """Freeze layers from below by schedule: they run forward only, and the backward pass stops above them.

    Of L layers, the lowest floor(share(t) L) do not train: no gradient buffer, no optimizer state touched. A step with
    b layers left costs L forward and b backward layers, each on (B, T, D). A share that falls thaws layers again.

    Source: the idea is old; Brock et al. 2017 (FreezeOut, arXiv 1706.04983) freeze progressively from below. We take
    the share from any schedule, and leave the learning rate of layers about to freeze alone.
    """

    kind: Literal["freeze"] = "freeze"
    share: Scheduled = scheduled_knob(
        Stages(values=(0.0, 0.25, 0.5, 0.75), until=(0.4, 0.6, 0.8)),
        "share of the layers that is frozen, counted from the embedding",
        ge=0,
        le=1,
    )
    embedding: Literal["trains", "frozen"] = knob(
        "trains", "embedding below frozen layers: trained only through a tied head, or frozen"
    )

    def plan(self, layers: int, progress: Progress, seed: int, micro_step: int = 0) -> LayerPlan:
        """All layers run, the lowest ones forward only; tuples of shape (layers,)."""
        # The epsilon: 0.3 of 10 layers is 3, whatever the rounding of 0.3.
        frozen = math.floor(at(self.share, progress) * layers + 1e-9)
        trains = tuple(layer >= frozen for layer in range(layers))
        return LayerPlan.full(layers, trains=trains, embedding=not frozen or self.embedding == "trains")

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse a share that reaches 1 where all that is left to train is frozen with the embedding."""
        yield from super().problems(recipe)
        model = recipe.architecture
        most = self.share if isinstance(self.share, float) else self.share.extremes()[1]
        # Foreign models have a final norm of their own.
        rest = getattr(model, "final_norm", True) or model.head != "linear" or not model.tied
        if most >= 1 and self.embedding == "frozen" and not rest:
            yield Problem(
                "depth.share",
                "reaches 1, and the head is the frozen embedding: nothing is left to train; stay below 1 or set "
                "depth.embedding=trains",
            )
