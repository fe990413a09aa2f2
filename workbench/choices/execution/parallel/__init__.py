"""Ways in which several processes train one model."""

from workbench.choices.execution.parallel.data import DataParallel
from workbench.choices.execution.parallel.parallel import Exchange, Parallel
from workbench.choices.execution.parallel.tensor import TensorParallel
from workbench.choices.execution.parallel.zero import Zero

__all__ = ["DataParallel", "Exchange", "Parallel", "TensorParallel", "Zero"]
