"""What an optimizer choice is: knobs, schedules and a plain torch optimizer at the end."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from pydantic import model_validator
from pydantic_core import PydanticCustomError
from torch import nn

from workbench.choices.choice import Choice, knob, one_of
from workbench.choices.progress import Progress
from workbench.choices.schedules.schedule import Schedule, Scheduled, at, scheduled_knob
from workbench.choices.schedules.warmup_hold_decay import WarmupHoldDecay


class OptimizerChoice(Choice):
    """Base of the optimizers: peak learning rate, its shape, weight decay, clipping.

    ``schedule`` is a factor on ``lr``: its peak is 1, so that changing ``lr`` keeps the shape.
    """

    axis: ClassVar[str] = "optimizer"
    lr: float = knob(1e-3, "peak learning rate", gt=0, le=100, scale="log")
    schedule: one_of(Schedule) = knob(  # type: ignore[valid-type]
        help="shape of the learning rate, as a factor on lr", default_factory=lambda: WarmupHoldDecay(warmup=0.1)
    )
    weight_decay: Scheduled = scheduled_knob(
        0.01, "decoupled weight decay on matrices (never on biases and norms)", ge=0, le=10
    )
    clip_norm: float | None = knob(1.0, "global gradient norm is clipped to this; empty means no clipping", gt=0)

    @model_validator(mode="after")
    def _rate_is_never_negative(self) -> OptimizerChoice:
        # The extremes rather than the ends: a shape may dip below zero on its way.
        lowest = self.schedule.extremes()[0]
        if lowest < 0:
            why = f"the schedule reaches {lowest:g}, but a learning rate must be >= 0: {self.schedule!r}"
            raise PydanticCustomError("knob", "{why}", {"name": "schedule", "why": why})
        return self

    def build(self, groups: list[dict[str, Any]], device: torch.device) -> torch.optim.Optimizer:
        """A plain torch optimizer at the peak rate.

        Args:
            groups: parameters of any shape, as :func:`parameter_groups` gives them.
            device: where they are; decides which kernels there are.
        """
        raise NotImplementedError

    def lr_at(self, progress: Progress) -> float:
        """Learning rate at ``progress`` (steps, tokens and seconds done): peak times the shape."""
        return self.lr * self.schedule.at(progress)

    def apply(self, optimizer: torch.optim.Optimizer, progress: Progress) -> dict[str, float]:
        """Write the values of this step into the optimizer's groups.

        Args:
            optimizer: as :meth:`build` made it.
            progress: steps, tokens and seconds done.

        Returns:
            ``lr`` and ``weight_decay``, for telemetry.
        """
        values = {"lr": self.lr_at(progress), "weight_decay": at(self.weight_decay, progress)}
        for group in optimizer.param_groups:
            # A tensor learning rate (CUDA graphs, compiled steps) is filled in place, never replaced.
            scale = group.get("lr_scale", 1.0)
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(values["lr"] * scale)
            else:
                group["lr"] = values["lr"] * scale
            # Biases and norms keep their 0, whatever the schedule says.
            if group.get("decays", True):
                group["weight_decay"] = values["weight_decay"]
        return values


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Two groups: matrices and embeddings decay, vectors (biases, norms) do not. Shared (tied) tensors count once.

    Returns:
        ``[{"params", "names", "weight_decay", "decays"}, ...]``; ``names`` run parallel to ``params`` so that
        checkpoints and telemetry can speak of parameters by name.
    """
    groups: list[dict[str, Any]] = [
        {"params": [], "names": [], "weight_decay": weight_decay, "decays": True},
        {"params": [], "names": [], "weight_decay": 0.0, "decays": False},
    ]
    for name, parameter in model.named_parameters():
        # By dimension rather than by name: a vector is a bias or a norm's weight in every architecture.
        group = groups[0] if parameter.ndim >= 2 else groups[1]
        group["params"].append(parameter)
        group["names"].append(name)
    return [group for group in groups if group["params"]]
