"""LANS."""

from __future__ import annotations

from typing import Literal

from workbench.choices.optimizers.optimizer import OptimizerChoice


class Lans(OptimizerChoice):
    """Layerwise adaptive steps with Nesterov momentum for very large batches."""

    kind: Literal["lans"] = "lans"
