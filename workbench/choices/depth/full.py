"""Every layer, always."""

from __future__ import annotations

from typing import Literal

from workbench.choices.depth.plan import Depth, LayerPlan
from workbench.choices.progress import Progress


class Full(Depth):
    """Every layer exists, runs and trains from the first step to the last."""

    kind: Literal["full"] = "full"

    def plan(self, layers: int, progress: Progress, seed: int, micro_step: int = 0) -> LayerPlan:
        """All ``layers`` running and training, tuples of shape (layers,); nothing else plays a part."""
        return LayerPlan.full(layers)
