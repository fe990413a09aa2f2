"""Ways in which a batch's gradients become one step: their mean, or the steps of several workers."""

from workbench.choices.optimizers.combine.adasum import AdaSum
from workbench.choices.optimizers.combine.combine import Combine
from workbench.choices.optimizers.combine.mean import Mean

__all__ = ["AdaSum", "Combine", "Mean"]
