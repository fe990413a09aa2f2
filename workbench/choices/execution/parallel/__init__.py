"""Ways in which several processes train one model."""

from workbench.choices.execution.parallel.data import DataParallel
from workbench.choices.execution.parallel.parallel import Exchange, Parallel

__all__ = ["DataParallel", "Exchange", "Parallel"]
