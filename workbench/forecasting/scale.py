"""Forecast a step on many devices from one measured device: what it computes, what all repeat, what is sent."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from workbench.base.errors import WorkbenchError
from workbench.forecasting.forecast import forecast
from workbench.forecasting.rates import Rates
from workbench.recipes.recipe import Recipe


@dataclass(frozen=True)
class Cluster:
    """Devices and the links between them. Links are what one device can send while all send, each way.

    Attributes:
        per_node: devices of one node.
        inside: GB/s of a device within its node. between: GB/s of a device to other nodes.
        latency: microseconds of one message between nodes.
        overlap: share of the sending that hides behind the backward pass, at most the time that this takes.
    """

    per_node: int = 8
    inside: float = 250.0
    between: float = 22.0
    latency: float = 20.0
    overlap: float = 0.0

    def sending(self, devices: int, payload: float) -> float:
        """Return the seconds in which gradients of ``payload`` bytes are summed over so many devices.

        A ring within each node, 2 (k - 1) / k of the payload, then a tree over the nodes, each device its k-th part.
        """
        within = min(devices, self.per_node)
        nodes = math.ceil(devices / self.per_node)
        seconds = 2 * (within - 1) / within * payload / (self.inside * 1e9)
        if nodes > 1:
            seconds += 2 * (nodes - 1) / nodes * payload / within / (self.between * 1e9)
            seconds += 2 * math.ceil(math.log2(nodes)) * self.latency * 1e-6
        return seconds


@dataclass(frozen=True)
class ScaledStep:
    """A step on so many devices, in seconds by part, and what a run to the same score takes.

    Attributes:
        devices: that share the batch.
        rows: of a device in a step.
        computing: passes over its rows. fixed: what every device does whatever its rows, as the optimizer's step.
        waiting: for gradients, beyond what hides behind the backward pass.
        samples: rows of the whole run, beside those of the batch that was forecast on one device.
        seconds: of the run.
    """

    devices: int
    rows: float
    computing: float
    fixed: float
    waiting: float
    samples: float
    seconds: float

    @property
    def step(self) -> float:
        """Seconds of the step."""
        return self.computing + self.fixed + self.waiting

    def to_dict(self) -> dict[str, Any]:
        """Return all of it, JSON-able."""
        return {**asdict(self), "step": self.step}


def more_samples(batch: float, critical: float) -> float:
    """Return how many times the samples of a small batch a batch of so many rows needs for one loss: 1 + B / B_crit.

    Source: McCandlish et al. 2018 (arXiv 1812.06162), equation 5.11. ``critical`` is infinite where a batch costs none.
    """
    return 1 + batch / critical


def step_on(
    devices: int, batch: float, row: float, fixed: float, payload: float, cluster: Cluster
) -> tuple[float, float, float]:
    """Return seconds of a step by part, computing, fixed, waiting, whose batch of rows is shared by so many devices.

    Args:
        row: seconds of one row on one device. fixed: seconds of a step without rows. payload: bytes of gradients.
    """
    computing = batch / devices * row
    sending = cluster.sending(devices, payload)
    # Two thirds of the passes are backward ones.
    hidden = min(cluster.overlap * sending, computing * 2 / 3)
    return computing, fixed, sending - hidden


def scaled(
    recipe: Recipe,
    devices: Sequence[int],
    cluster: Cluster | None = None,
    *,
    weak: bool = False,
    critical: float = math.inf,
    payload_bytes: int = 4,
    rates: Rates | None = None,
    say: Callable[[str], None] | None = None,
) -> list[ScaledStep]:
    """Return a recipe's step and run on each number of devices like this one.

    Two forecasts on one device, of the whole batch and of half of it, say what a row takes and what every step takes.

    Args:
        devices: numbers of them. cluster: links; None for those of a cluster with NVLink and InfiniBand.
        weak: each device gets the recipe's batch, which then grows with them; else they share it.
        critical: rows of the batch that needs twice the samples of a small one; infinite: samples stay.
        payload_bytes: of a gradient as it is sent. rates, say: as for :func:`forecast`.

    Raises:
        WorkbenchError: a number of devices below 1, or more than there are rows to share.

    Example:
        >>> import workbench as wb
        >>> [each.step for each in scaled(wb.presets.fast(), [1, 2])]  # doctest: +SKIP
        [0.157, 0.091]
    """
    cluster, rows = cluster or Cluster(), recipe.data.most_rows
    for number in devices:
        if number < 1:
            raise WorkbenchError(f"devices: {number} is none; use 1 or more")
        if not weak and number > rows:
            raise WorkbenchError(
                f"{number} devices cannot share {rows} rows; use 1..{rows}, or weak (--weak), where the batch grows"
            )
    half = max(1, rows // 2)
    found = {size: forecast(_steady(recipe, size), rates=rates, say=say) for size in {rows, half}}
    step = {size: each.seconds / each.steps for size, each in found.items()}
    row = (step[rows] - step[half]) / (rows - half) if rows > half else step[rows]
    fixed = max(0.0, step[rows] - rows * row)
    payload = payload_bytes * found[rows].parameters
    samples = forecast(recipe, rates=rates).tokens / recipe.data.longest / more_samples(rows, critical)
    answer = []
    for number in devices:
        batch = rows * number if weak else rows
        parts = step_on(number, batch, row, fixed, payload, cluster)
        needed = samples * more_samples(batch, critical)
        answer.append(ScaledStep(number, batch / number, *parts, needed, needed / batch * sum(parts)))
    return answer


def _steady(recipe: Recipe, rows: int) -> Recipe:
    return recipe.with_(
        data={"batch_size": rows, "batch_rule": "as_scheduled"},
        execution={"micro_batch_size": rows},
        budget="100 steps",
    )
