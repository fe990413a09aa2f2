"""AdamW."""

from __future__ import annotations

from typing import Any, Literal

import torch

from workbench.choices.choice import knob
from workbench.choices.optimizers.optimizer import OptimizerChoice


class AdamW(OptimizerChoice):
    """Adam with decoupled weight decay, torch's fused step."""

    kind: Literal["adamw"] = "adamw"
    beta1: float = knob(0.9, "decay of the first moment", ge=0, lt=1)
    beta2: float = knob(0.98, "decay of the second moment", ge=0, lt=1)
    eps: float = knob(1e-8, "added to the denominator", gt=0, scale="log")

    def build(self, groups: list[dict[str, Any]], device: torch.device) -> torch.optim.Optimizer:
        return torch.optim.AdamW(groups, lr=self.lr, betas=(self.beta1, self.beta2), eps=self.eps, fused=True)
