"""AdamW as ``torch.optim.AdamW`` is by itself: what a model of the user's own trains with unless told otherwise."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch

from workbench.choices.choice import knob, one_of
from workbench.choices.optimizers.adamw import AdamW
from workbench.choices.schedules.linear import Linear
from workbench.choices.schedules.schedule import Schedule, Scheduled, scheduled_knob


class TorchAdamW(AdamW):
    """AdamW with torch's own defaults: a constant rate, no clipping, and everything decays, biases and norms too.

    The step is that of :class:`AdamW`. Not offered beside it: for a recipe its defaults are the worse ones; here they
    make ``wb.accelerate(model, loader)`` compute what the loop that it replaces did.
    """

    listed: ClassVar[bool] = False
    kind: Literal["torch_adamw"] = "torch_adamw"  # type: ignore[assignment]
    schedule: one_of(Schedule) = knob(  # type: ignore[valid-type]
        help="shape of the learning rate, as a factor on lr",
        unit="\u00d7 lr",
        default_factory=lambda: Linear(start=1.0, end=1.0),
    )
    weight_decay: Scheduled = scheduled_knob(0.01, "decoupled weight decay on all parameters", ge=0, le=10)
    clip_norm: float | None = knob(None, "global gradient norm is clipped to this; empty means no clipping", gt=0)
    beta2: float = knob(0.999, "decay of the second moment", ge=0, lt=1)

    def build(self, groups: list[dict[str, Any]], device: torch.device) -> torch.optim.Optimizer:
        """Return torch's AdamW over parameters of any shape; :meth:`apply` writes the decay of every group before a
        step.
        """
        return super().build([{**group, "decays": True} for group in groups], device)
