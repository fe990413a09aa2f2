"""Define what an engine computes on: the device, its threads and precision, and the processes that train together."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch

from workbench.choices.execution.precision import DTYPES, set_float32_products
from workbench.choices.execution.ranks import Ranks


class Mode(NamedTuple):
    """Hold everything that decides how fast an engine is on a machine, and so for which a forecast is valid.

    Attributes:
        device: ``cpu`` or ``cuda``.
        threads: of the trainer.
        precision: of products.
        compiled: whether blocks are.
    """

    device: str
    threads: int
    precision: str
    compiled: bool

    @property
    def dtype(self) -> torch.dtype:
        """Return the dtype that products read and write."""
        return DTYPES[self.precision]


class Hardware:
    """Hold what a recipe is computed on; as it stands, one device in float32.

    Making one is light, whatever the engine: a notebook makes it for a forecast. Only :meth:`start` takes over a
    process.

    Args:
        recipe: to carry out.
        device: instead of the one that the recipe asks for.

    Attributes:
        device: of model, batches and gradients.
        precision: of products, by name; weights and losses are float32.
        compiled: whether blocks are.
        ranks: which of several processes that train together this one is.
    """

    precision: str = "fp32"
    compiled: bool = False
    ranks: Ranks = Ranks()

    def __init__(self, recipe: Any, device: torch.device | None = None) -> None:
        self.recipe = recipe
        self.device: torch.device = device or recipe.execution.resolve_device()

    @property
    def mode(self) -> Mode:
        """Return the mode that forecasts price."""
        threads = self.recipe.execution.threads or torch.get_num_threads()
        return Mode(self.device.type, threads, self.precision, self.compiled)

    @property
    def dtype(self) -> torch.dtype:
        """Return the dtype that products read and write."""
        return self.mode.dtype

    @property
    def workers(self) -> int:
        """Return how many workers of the optimizer step in this process, one after the other."""
        count: int = self.recipe.optimizer.combine.count
        return max(1, count // self.ranks.size)

    @property
    def shares(self) -> int:
        """Return into how many parts the rows of a micro-batch are cut: one for each worker, or for each process."""
        return self.workers * self.readers.size

    @property
    def readers(self) -> Ranks:
        """Return which of the processes that share the rows of a step this one is; alone where it reads all of them."""
        return self.ranks if self.recipe.execution.readers(self.ranks.size) > 1 else Ranks()

    def join(self, ranks: Ranks) -> None:
        """Train as one of several processes; before a model is placed."""
        self.ranks = ranks

    def start(self) -> None:
        """Make this process a trainer: set what belongs to the process as a whole."""
        if self.recipe.execution.threads:
            torch.set_num_threads(self.recipe.execution.threads)
        set_float32_products(self.precision, self.device)

    def autocast(self) -> AbstractContextManager[Any]:
        """Return the context of every pass through the model, also of those that score or sample."""
        return torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32)
