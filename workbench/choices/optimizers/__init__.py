"""Optimizers."""

from workbench.choices.optimizers.adafactor import Adafactor
from workbench.choices.optimizers.adamw import AdamW
from workbench.choices.optimizers.combine import AdaSum, Combine, Mean
from workbench.choices.optimizers.lamb import Lamb
from workbench.choices.optimizers.lans import Lans
from workbench.choices.optimizers.lion import Lion
from workbench.choices.optimizers.muon import Muon
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.choices.optimizers.soap import Soap
from workbench.choices.optimizers.sophia import Sophia
from workbench.choices.optimizers.stable_adamw import StableAdamW
from workbench.choices.optimizers.torch_adamw import TorchAdamW
from workbench.ops.parameter_groups import parameter_groups

__all__ = [
    "AdaSum", "Adafactor", "AdamW", "Combine", "Lamb", "Lans", "Lion", "Mean", "Muon", "Soap", "Sophia", "StableAdamW",
    "TorchAdamW", "OptimizerChoice", "parameter_groups",
]  # fmt: skip
