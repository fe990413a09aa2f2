"""The base of the optimizer choices: knobs, schedules and a plain torch optimizer at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import torch
from pydantic import model_validator
from pydantic_core import PydanticCustomError

from workbench.choices.choice import Choice, Problem, knob, one_of
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.optimizers.combine.combine import Combine
from workbench.choices.optimizers.combine.mean import Mean
from workbench.choices.progress import Progress
from workbench.choices.schedules.schedule import Schedule, Scheduled, at, scheduled_knob
from workbench.choices.schedules.warmup_hold_decay import WarmupHoldDecay


def weight_decay_knob(default: float) -> Any:
    """Return the knob of the weight decay, a number or a schedule, >= 0 and multiplied by the learning rate."""
    return scheduled_knob(default, "decoupled weight decay on matrices (never on biases and norms)", ge=0, le=10)


class OptimizerChoice(Choice):
    """Base of the optimizers: peak learning rate, its shape, weight decay, clipping.

    ``schedule`` is a factor on ``lr``: its peak is 1, so that changing ``lr`` keeps the shape.
    """

    axis: ClassVar[str] = "optimizer"
    provides: ClassVar[tuple[str, ...]] = ("build",)
    # Entries of its state, float32 in a tensor's shape, that an engine may keep in another form between two steps: none
    # unless a tensor's step depends on no other tensor. Those whose names end in `_sq` are never negative.
    moments: ClassVar[tuple[str, ...]] = ()
    # The step of a number depends on that number, its gradient and its state alone, so that any part of a tensor can be
    # stepped by itself.
    elementwise: ClassVar[bool] = False
    lr: float = knob(1e-3, "peak learning rate", gt=0, le=100, scale="log")
    schedule: one_of(Schedule) = knob(  # type: ignore[valid-type]
        help="shape of the learning rate, as a factor on lr",
        unit="\u00d7 lr",
        default_factory=lambda: WarmupHoldDecay(warmup=0.1),
    )
    weight_decay: Scheduled = weight_decay_knob(0.01)
    clip_norm: float | None = knob(1.0, "global gradient norm is clipped to this; empty means no clipping", gt=0)
    combine: one_of(Combine) = knob(  # type: ignore[valid-type]
        help="how a batch's gradients become one step", default_factory=Mean
    )

    average: float = knob(
        0.0, "decay per step of an average of the weights, which is scored and exported; 0: the last weights are", ge=0,
        lt=1,
    )  # fmt: skip

    @model_validator(mode="after")
    def _rate_is_never_negative(self) -> OptimizerChoice:
        # The extremes rather than the ends: a shape may dip below zero on its way.
        lowest = self.schedule.extremes()[0]
        if lowest < 0:
            why = f"the schedule reaches {lowest:g}, but a learning rate must be >= 0: {self.schedule!r}"
            raise PydanticCustomError("knob", "{why}", {"name": "schedule", "why": why})
        return self

    def build(self, groups: list[dict[str, Any]], device: torch.device) -> torch.optim.Optimizer:
        """Return a plain torch optimizer at the peak rate.

        Args:
            groups: parameters of any shape, as :func:`parameter_groups` gives them.
            device: where they are; decides which kernels there are.
        """
        raise NotImplementedError

    @property
    def passes(self) -> float:
        """Forward and backward passes of one step, on average."""
        return 1.0

    @property
    def needs_all_tensors(self) -> str:
        """The reason why the step of one tensor needs the gradients of all, and a way out; empty where it does not."""
        return ""

    @property
    def takes_gradients(self) -> bool:
        """Return True for a method that takes gradients of its own, see :meth:`before_step`."""
        return type(self).before_step is not OptimizerChoice.before_step

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Yield what several workers rule out."""
        yield from self.combine.problems(recipe)

    def problems_together(self, recipe: Any, processes: int) -> Iterator[Problem]:
        """Yield that a method cannot which takes gradients of its own, since they are of one process's rows."""
        yield from self.combine.problems_together(recipe, processes)
        if self.takes_gradients:
            kind = self.kind  # type: ignore[attr-defined]
            why = f"'{kind}' takes gradients of its own, of one process's rows; use another, or train in one process"
            yield Problem("optimizer.kind", why)

    def before_step(
        self, made: Any, parts: Sequence[Batch], plan: Callable[[int], LayerPlan], progress: Progress, seed: int
    ) -> bool:
        """Do what the method needs before the step's own gradient is taken; return whether anything was done.

        Args:
            made: has ``model``, ``optimizer`` and ``engine``; no gradients may be left behind.
            parts: rows of tokens, (B, T), by micro-batch.
            plan: what every layer does, by number of micro-batch.
            progress: before the step.
            seed: of the recipe.
        """
        return False

    def lr_at(self, progress: Progress) -> float:
        """Return learning rate at ``progress`` (steps, tokens and seconds done): peak times the shape."""
        return self.lr * self.schedule.at(progress)

    def rate_scale(self, group: dict[str, Any]) -> float:
        """Return factor on the learning rate of a parameter group, whatever its parameters' shapes."""
        return float(group.get("lr_scale", 1.0))

    def apply(self, optimizer: torch.optim.Optimizer, progress: Progress, rate: float) -> dict[str, float]:
        """Write the values of this step into the optimizer's groups; returns ``lr`` and ``weight_decay``.

        Args:
            progress: steps, tokens and seconds done.
            rate: the learning rate of the step.
        """
        values = {"lr": rate, "weight_decay": at(self.weight_decay, progress)}
        for group in optimizer.param_groups:
            # A tensor learning rate (CUDA graphs, compiled steps) is filled in place, never replaced.
            scale = self.rate_scale(group)
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(values["lr"] * scale)
            else:
                group["lr"] = values["lr"] * scale
            # Biases and norms keep their 0, whatever the schedule says.
            if group.get("decays", True):
                group["weight_decay"] = values["weight_decay"]
        return values
