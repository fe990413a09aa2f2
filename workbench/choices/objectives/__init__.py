"""Objectives: what the model learns to predict."""

from workbench.choices.objectives.answer import AnswerSpan
from workbench.choices.objectives.causal import Causal
from workbench.choices.objectives.classify import Classify
from workbench.choices.objectives.diffusion import Diffusion
from workbench.choices.objectives.hybrid import Hybrid
from workbench.choices.objectives.masked import Masked
from workbench.choices.objectives.masked_permuted import MaskedPermuted
from workbench.choices.objectives.meta_controller import MetaController
from workbench.choices.objectives.objective import Loss, Objective, TrainingModel
from workbench.choices.objectives.phases import Phases
from workbench.choices.objectives.regress import Regress
from workbench.choices.objectives.replaced_token import ReplacedToken
from workbench.choices.objectives.selective import Selective
from workbench.choices.objectives.selective_masked import SelectiveMasked

__all__ = [
    "AnswerSpan", "Causal", "Classify", "Diffusion", "Hybrid", "Loss", "Masked", "MaskedPermuted", "MetaController",
    "Objective", "Phases", "Regress", "ReplacedToken", "Selective", "SelectiveMasked", "TrainingModel",
]  # fmt: skip
