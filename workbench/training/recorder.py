"""From tensors of a step to lines of telemetry, without making a GPU wait: its numbers are read one step late."""

from __future__ import annotations

import math
import os
from collections import deque
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from workbench.choices.progress import Progress
from workbench.telemetry.speed import RecentSpeed
from workbench.telemetry.streams import RECENT, TelemetryWriter
from workbench.training.measurements import HostCopy, LayerReading, StepTimes, memory_gib

RESCUE = "lower optimizer.lr, lengthen its warm-up or set optimizer.clip_norm"
"""Advice against a loss that is not finite."""


class NotFinite(ArithmeticError):
    """The loss or the weights became NaN or infinite; the message names the step, the cause and what helps."""


def not_finite(
    what: str, model: nn.Module, norm: Tensor | None, optimizer: torch.optim.Optimizer, advice: str = ""
) -> NotFinite:
    """Return the error for a model whose last update can still be looked at.

    Args:
        what: became not finite, and when.
        model: as the last update left it.
        norm: of the gradients of that update, 0-d, before clipping; None when nobody computed it.
        optimizer: that made the update.
        advice: of the engine, against gradients that overflow.
    """
    broken = [name for name, weight in model.named_parameters() if not weight.isfinite().all()]
    if norm is None or not broken:
        return NotFinite(f"{what}; {RESCUE}")
    if not norm.isfinite():
        return NotFinite(
            f"{what}: the loss before it was finite, its gradients were not, so the backward pass overflowed; "
            f"{RESCUE}{advice and f'; or {advice}'}"
        )
    return NotFinite(
        f"{what}: the gradients before it were finite (norm {float(norm):.4g}), but {type(optimizer).__name__} left "
        f"{broken[0]} not finite (and {len(broken) - 1} weights more). That is its own arithmetic, and a lower "
        "learning rate rarely helps: use another optimizer, for example 'adamw', and report the recipe"
    )


@dataclass
class StepRecord:
    """The results of one step.

    Attributes:
        progress: where the run stands after it.
        loss, metrics: 0-d tensors on the device, nats and plain numbers.
        grad_norm: 0-d tensor before clipping, or None when nobody needed it.
        knobs: scheduled values that were in force.
        times: split of the step's time.
        layers: per-layer statistics, on the steps that have them.
        layers_run: mean per micro-batch.
        useful_flops: of this step.
    """

    progress: Progress
    loss: Tensor
    metrics: dict[str, Tensor]
    grad_norm: Tensor | None
    knobs: dict[str, float]
    times: StepTimes
    layers: LayerReading | None
    layers_run: float
    useful_flops: float


class Recorder:
    """Writes a run's scalars and layers, and keeps what the state file and the result need.

    Args:
        writer: of the run; None looks at the losses and writes nothing.
        scalars_every, layers_every: steps between records.
        progress: where the run begins.
        peak_flops: what MFU is a share of, FLOP/s; NaN leaves MFU out.
        useful_flops: done before.

    Attributes:
        loss: of the last record. tokens_per_second: of the last ten seconds (:class:`RecentSpeed`).
        recent: losses of the last steps, at most :data:`RECENT`.
        useful_flops: so far.
        peak_flops: what MFU is a share of.
        spent_seconds: of the host on measuring and recording, since the last record.
    """

    def __init__(
        self,
        writer: TelemetryWriter | None,
        device: torch.device,
        scalars_every: int,
        layers_every: int,
        progress: Progress,
        peak_flops: float = math.nan,
        useful_flops: float = 0.0,
    ) -> None:
        self.writer, self.scalars_every, self.layers_every = writer, scalars_every, layers_every
        self.loss = self.tokens_per_second = math.nan
        self.recent: deque[float] = deque(maxlen=RECENT)
        self.useful_flops = useful_flops
        self.spent_seconds = 0.0
        self._device, self.peak_flops = device, peak_flops
        self._unread: list[tuple[int, Tensor]] = []
        self._waiting: tuple[StepRecord, HostCopy, list[int], float] | None = None
        self._last = (progress.tokens, progress.seconds, useful_flops)
        self._speed = RecentSpeed(progress.tokens, progress.seconds)

    def wants_layers(self, before: Progress) -> bool:
        """Return True if the layers of the coming step are measured; those of the last step are where it is known."""
        return self.writer is not None and self.measures_layers(before)

    def measures_layers(self, before: Progress) -> bool:
        """Return True if the layers of the coming step are measured, here or in another process of the run."""
        return before.step % self.layers_every == 0 or before.ends_next

    def take(self, record: StepRecord) -> None:
        """Take a step's numbers; reads them now (CPU) or when the next ones come (GPU).

        Raises:
            NotFinite: a loss that was read is NaN or infinite.
        """
        step = record.progress.step
        self.useful_flops += record.useful_flops
        self._unread.append((step, record.loss))
        # By the number of steps before it, so that the very first step is on record.
        if (step - 1) % self.scalars_every and record.layers is None:
            return
        # Every loss since the last record travels along: none goes unlooked at.
        tensors = {"losses": torch.stack([loss.detach() for _, loss in self._unread]), **record.metrics}
        if record.grad_norm is not None:
            tensors["grad_norm"] = record.grad_norm
        earlier = self._waiting
        self._waiting = record, HostCopy(tensors), [step for step, _ in self._unread], self.useful_flops
        self._unread = []
        # One record late on a GPU, when it has long been computed: reading it now would make every step wait.
        if self._device.type == "cuda":
            if earlier is not None:
                self._write(*earlier)
        else:
            self.settle()

    def settle(self) -> None:
        """Read and write everything taken so far; waits for the device.

        Raises:
            NotFinite: a loss that was read is NaN or infinite.
        """
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._write(*waiting)
        if self._unread:
            self._look_at([step for step, _ in self._unread], torch.stack([loss for _, loss in self._unread]).tolist())
            self._unread = []

    def _look_at(self, steps: list[int], losses: list[float]) -> None:
        for step, loss in zip(steps, losses, strict=True):
            if not math.isfinite(loss):
                raise NotFinite(f"the loss became {loss} at step {step}; {RESCUE}")
        self.recent.extend(losses)
        self.loss = losses[-1]

    def _write(self, record: StepRecord, copy: HostCopy, steps: list[int], useful_flops: float) -> None:
        read = copy.read()
        self._look_at(steps, read.pop("losses"))
        progress = record.progress
        tokens, seconds, flops = self._last
        # A clock may not have moved between two steps of a toy model.
        passed = max(progress.seconds - seconds, 1e-9)
        self.tokens_per_second = self._speed.after(progress.tokens, progress.seconds)
        self._last = (progress.tokens, progress.seconds, useful_flops)
        if self.writer is None:
            return
        values: dict[str, float | None] = {name: value for name, (value,) in read.items()}
        values |= record.knobs | record.times.milliseconds()
        values |= {"tokens_per_second": (progress.tokens - tokens) / passed, "layers_run": record.layers_run}
        if (share := record.times.processor_share) is not None:
            values["processor_share"] = share
        # Per step, and without this record's own: the next record has that.
        values["telemetry_ms"] = 1e3 * self.spent_seconds / len(steps)
        self.spent_seconds = 0.0
        # Counted up, as tokens are: an axis on which runs of different models are compared.
        values["flops"] = useful_flops
        if math.isfinite(self.peak_flops):
            values["mfu"] = (useful_flops - flops) / passed / self.peak_flops
        if record.layers is not None:
            values |= {"memory_gib": memory_gib(self._device), "load": os.getloadavg()[0]}
            self.writer.layers(progress.step, **record.layers.vectors())
        # Six digits: more than a plot can show, and half the bytes of a full float.
        rounded = {name: value if value is None else float(f"{value:.6g}") for name, value in values.items()}
        self.writer.scalars(progress.step, progress.seconds, progress.tokens, loss=self.loss, **rounded)
