"""Objectives: what the model learns to predict."""

from workbench.choices.objectives.causal import Causal
from workbench.choices.objectives.hybrid import Hybrid
from workbench.choices.objectives.masked import Masked
from workbench.choices.objectives.objective import Loss, Objective, TrainingModel

__all__ = ["Causal", "Hybrid", "Loss", "Masked", "Objective", "TrainingModel"]
