"""Rates of a machine as data: measured by ``calibration.py``, read by ``pricing.py``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

Curve = tuple[tuple[float, float], ...]
"""(size, value) pairs, sizes rising; between them values run along a power law."""


class OptimizerRates(BaseModel):
    """Seconds of an optimizer's step.

    Attributes:
        matrix: per number of a hidden matrix, by its smaller side.
        embedding: per number of a table that is too large for a cache.
        vector: per vector, whatever its length.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    matrix: Curve
    embedding: float
    vector: float

    def seconds_of(self, matrices: Sequence[tuple[int, int]], vectors: int, tables: int, share: float = 1.0) -> float:
        """Return seconds of a step.

        Args:
            matrices: (numbers, smaller side) of the hidden ones, those of equal sides together.
            vectors: how many.
            tables: numbers in them.
            share: of matrices and vectors that have gradients.
        """
        hidden = sum(numbers * interpolate(self.matrix, side) for numbers, side in matrices)
        return share * (hidden + vectors * self.vector) + tables * self.embedding


class Rates(BaseModel):
    """Rates of a machine in one mode, of kernels that run one by one.

    Attributes:
        kernels: by the key of an operation, or its kind for unknown keys: seconds per call, then per FLOP
            and number read and written of a product, or per byte.
        attention_choice: the faster implementation by the length of rows.
        memory_bytes: of the device, all of it.
        product: seconds of a large matrix product in the same sitting: how fast the machine was.
        disagreement: between the halves of the rounds in which kernels were timed, as a share, at worst.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    device: str
    date: str
    kernels: dict[str, tuple[float, ...]]
    attention_choice: dict[str, str]
    optimizers: dict[str, OptimizerRates]
    memory_bytes: int
    product: float = 0.0
    disagreement: float = 0.0
    seconds: float = 0.0


def interpolate(curve: Curve, size: float) -> float:
    """Return the curve's value at a size, along straight lines of its logarithms; constant below,
    the last line goes on.

    Example:
        >>> round(interpolate(((1.0, 10.0), (100.0, 1000.0)), 10.0))
        100
    """
    if size <= curve[0][0] or len(curve) == 1:
        return curve[0][1]
    pairs = list(itertools.pairwise(curve))
    (x0, y0), (x1, y1) = next((pair for pair in pairs if size <= pair[1][0]), pairs[-1])
    return float(y0 * (y1 / y0) ** (math.log(size / x0) / math.log(x1 / x0)))
