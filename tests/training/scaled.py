"""A second engine, as another package would bring it: gradients are scaled by a power of two until they are finished.

Whatever asks the engine gets the same numbers as from the plainest one, bit for bit; whatever goes past it is off by
the factor.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from workbench.choices.choice import knob
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution import Engine, Execution, Process
from workbench.choices.objectives.objective import Loss, TrainingModel
from workbench.choices.progress import Progress

VARIABLE = "SCALED_ENGINE"


class Scaled(Execution):
    """Eager float32 with gradients scaled by a power of two."""

    kind: Literal["scaled"] = "scaled"
    exponent: int = knob(3, "gradients are scaled by 2 to the power of this", ge=0, le=30)

    def engine(self, recipe: Any) -> ScaledEngine:
        """See :class:`ScaledEngine`."""
        return ScaledEngine(recipe)

    def process(self) -> Process:
        """This Python with one variable more."""
        return Process(environment={VARIABLE: "1"})


class ScaledEngine(Engine):
    """A recipe under :class:`Scaled`; counts what it is asked."""

    def __init__(self, recipe: Any) -> None:
        super().__init__(recipe)
        self.steps, self.asked = 0, list[str]()

    @property
    def loss_scale(self) -> float:
        return 2.0**self.recipe.execution.exponent

    def place(self, model: TrainingModel) -> TrainingModel:
        self.asked.append("place")
        return super().place(model)

    def compile(self, model: TrainingModel) -> None:
        self.asked.append("compile")

    def forward(self, model: TrainingModel, batch: Batch, plan: LayerPlan, progress: Progress) -> Loss:
        self.asked.append("forward")
        return super().forward(model, batch, plan, progress)

    def backward(self, loss: Tensor, parts: int = 1) -> None:
        self.asked.append("backward")
        super().backward(loss * self.loss_scale, parts)

    def finish(self, optimizer: torch.optim.Optimizer) -> None:
        self.asked.append("finish")
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad /= self.loss_scale

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        self.asked.append("step")
        self.steps += 1
        super().step(optimizer)

    def state(self) -> dict[str, Any]:
        return {"steps": self.steps}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.steps = state.get("steps", 0)

    def described(self) -> dict[str, Any]:
        return super().described() | {"scaled_by": self.loss_scale, "variable": os.environ.get(VARIABLE)}
