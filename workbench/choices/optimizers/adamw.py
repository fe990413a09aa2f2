"""AdamW."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch

from workbench.choices.choice import knob
from workbench.choices.optimizers.optimizer import OptimizerChoice

FUSED_DEVICES = ("cpu", "cuda", "mps", "xpu")
"""Device types for which torch carries a one-kernel AdamW step."""


class AdamW(OptimizerChoice):
    """Adam with decoupled weight decay, torch's fused step.

    m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, x <- x - lr (mhat / (sqrt(vhat) + eps) + wd x), all of one shape.

    Source: Loshchilov & Hutter 2019 (arXiv 1711.05101), algorithm 2. The decay is multiplied by lr, as torch does.
    """

    kind: Literal["adamw"] = "adamw"
    elementwise: ClassVar[bool] = True
    moments: ClassVar[tuple[str, ...]] = ("exp_avg", "exp_avg_sq")
    beta1: float = knob(0.9, "decay of the first moment", ge=0, lt=1)
    beta2: float = knob(0.98, "decay of the second moment", ge=0, lt=1)
    eps: float = knob(1e-8, "added to the denominator", gt=0, scale="log")

    def build(self, groups: list[dict[str, Any]], device: torch.device) -> torch.optim.Optimizer:
        """Return torch's AdamW; both moments have their parameter's shape and precision."""
        # One kernel instead of a dozen passes over weights, gradients and both moments.
        fused = device.type in FUSED_DEVICES
        return torch.optim.AdamW(groups, lr=self.lr, betas=(self.beta1, self.beta2), eps=self.eps, fused=fused)
