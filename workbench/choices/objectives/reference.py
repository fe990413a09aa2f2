"""A frozen model beside the one that trains."""

from __future__ import annotations

from typing import Any, NamedTuple

from workbench.choices.architectures.architecture import Architecture
from workbench.choices.architectures.flops import head_flops, step_flops
from workbench.choices.depth.plan import LayerPlan


class Reference(NamedTuple):
    """A frozen model that another one is compared with in training.

    Attributes:
        model: a :class:`~workbench.choices.objectives.objective.TrainingModel`, on the device.
        plan: of its layers, none of which trains.
        architecture: of the model.
    """

    model: Any
    plan: LayerPlan
    architecture: Architecture

    def flops(self, tokens: int, labelled: int, span: float, length: int) -> float:
        """Return the FLOPs of its forward pass, head on ``labelled`` tokens; arguments as for ``step_flops``."""
        size = self.model.vocabulary.size
        whole = step_flops(self.architecture, size, [self.plan], tokens, labelled, span, length)
        # Of a step's three passes through the head one; `whole` has the two that a frozen head takes.
        head = head_flops(self.architecture, size) / 3 - head_flops(self.architecture, size, self.plan)
        return whole + labelled * head
