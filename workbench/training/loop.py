"""The training loop: one optimizer step, the same for every method. What differs between methods is in the choices.

A step is a function of (weights, optimizer state, seed, step): data, masks, dropped layers and dropout all derive
from the seed and the step's number, so a checkpoint needs no generator state and a resumed run repeats bit for bit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.parallel.workers import WorkersOptimizer
from workbench.choices.execution.ranks import carried_out_by_all, waited_seconds
from workbench.choices.progress import Progress
from workbench.ops.timing import wait_for
from workbench.recipes.recipe import Recipe
from workbench.telemetry.streams import TelemetryWriter
from workbench.training import averaging
from workbench.training.assemble import Assembled
from workbench.training.batch_size import BatchSize
from workbench.training.batches import StepBatch, StepShape
from workbench.training.gradients import Gradients, clip, step_counts, unchanged_buffers, waiting, zero_fill
from workbench.training.growth import Growth
from workbench.training.measurements import LayerMeter, StepTimes
from workbench.training.recorder import NotFinite, Recorder, StepRecord, not_finite


def step_seed(seed: int, step: int) -> int:
    """Return the torch seed for ``step`` (0-based)."""
    return (seed << 32) + step


def _seed(device: torch.device, seed: int) -> None:
    # Without a GPU in use, torch.manual_seed notes for each kind of one who has asked: 0.1 to 0.3 ms of every step.
    (torch.default_generator.manual_seed if device.type == "cpu" else torch.manual_seed)(seed)


class Training:
    """A recipe in training: call :meth:`step` until :attr:`progress` is done.

    Args:
        recipe: with every knob change so far applied.
        assembled: its torch objects.
        writer: where telemetry goes; None measures nothing but the loss.
        progress: where to begin; None for the beginning.
        peak_flops: what MFU is a share of, FLOP/s.
        done_flops: useful ones before ``progress``.
        grown, batch, position: what ``growth``, ``batch_size`` and ``batches`` said of their ``state()`` at
            ``progress``; None for the beginning.

    Attributes:
        progress: steps, tokens and seconds of training so far. Only what :meth:`step` and :meth:`settle` take is
            charged: start-up, compilation, evaluation, checkpoints and pauses are not.
        suspended_seconds: in which the whole process stood still, as its heartbeat noticed: not charged either.
        norm: of the last step's gradients before clipping, 0-d; None before the first, and where none was computed.
    """

    norm: Tensor | None = None
    suspended_seconds = 0.0
    _waited_ms = 0.0

    def __init__(
        self,
        recipe: Recipe,
        assembled: Assembled,
        writer: TelemetryWriter | None = None,
        progress: Progress | None = None,
        peak_flops: float = math.nan,
        done_flops: float = 0.0,
        grown: dict[str, Any] | None = None,
        batch: dict[str, float | None] | None = None,
        position: Mapping[str, Any] | None = None,
    ) -> None:
        assert (assembled.model.reference is None) == (recipe.objective.reference is None), "a reference is read first"
        self.recipe, self.assembled, self.engine = recipe, assembled, assembled.engine
        self.device = self.engine.device
        self.growth = Growth(assembled, writer, grown)
        self._warnings: set[str] = set()
        self.progress = progress or Progress(step=0, tokens=0, seconds=0.0, budget=recipe.budget)
        execution = recipe.execution
        self.recorder = Recorder(
            writer, self.device, execution.scalars_every, execution.layers_every, self.progress, peak_flops, done_flops
        )
        self._take_over()
        self.engine.fit(self.model, self.optimizer, self.rehearse)
        if writer is not None:
            for kind, text in self.engine.findings.items():
                writer.event(self.progress.step, kind, text)
        self.batch_size = BatchSize(recipe, self.engine.micro_batch_size, batch)
        self.batches = assembled.steps(position)

    @carried_out_by_all
    def step(self) -> None:
        """Take one optimizer step and write what it has to say.

        Raises:
            NotFinite: the loss is NaN or infinite (on a GPU: was, one step ago).
        """
        with self._charged() as elapsed:
            before, waited = self.progress, waited_seconds()
            if self.growth.advance(self.recipe, before):
                self._take_over()
            # Dropout and its like: a stream of its own for every step and share of the rows, the same on a resumed run.
            _seed(self.device, step_seed(self.recipe.seed, before.step) ^ (self.engine.readers.rank << 40))
            shape = self.batch_size.shape(before)
            knobs = self._apply_schedules(shape)
            times = StepTimes(self.device)
            batch = self.batches.next(before.tokens, shape)
            times.mark("data")
            if self.recipe.optimizer.before_step(self.assembled, batch.parts, self.plan, before, self.recipe.seed):
                times.mark("optimizer")
            layered = self._measures_layers(before)
            result = self._gradients(batch, times, layered)
            norm = self.norm = result.norm(self._clip())
            self._waited_ms = 1e3 * (waited_seconds() - waited)
            if layered:
                self.meter.gradients()
            if self.recipe.depth.momentum_acts:
                zero_fill(self.model, result.plans)
            self.engine.step(self.optimizer)
            averaging.follow(self.assembled.average, self.model, self.recipe.optimizer.average, before.step)
            times.mark("optimizer")
            measuring = time.perf_counter()
            layers = self.meter.after(result.plans[-1], batch.parts[-1].to(self.device)) if layered else None
            tokens = before.tokens + batch.tokens
            self.progress = Progress(before.step + 1, tokens, before.seconds + elapsed(), before.budget)
            self.recorder.take(
                StepRecord(
                    progress=self.progress,
                    loss=result.loss(),
                    metrics=result.metrics(),
                    grad_norm=norm,
                    knobs=knobs | dict(batch.read) | self.engine.exchange.told() | waiting(result.waited),
                    times=times,
                    layers=layers,
                    layers_run=sum(sum(plan.runs) for plan in result.plans) / len(result.plans),
                    useful_flops=self.assembled.flops(batch, result.plans, result.counts),
                )
            )
            self.recorder.spent_seconds += time.perf_counter() - measuring

    @carried_out_by_all
    def settle(self) -> None:
        """Wait for the device and write what is pending: before an evaluation, a checkpoint, a pause, the end.

        Raises:
            NotFinite: no checkpoint is ever taken of a model whose loss nobody has looked at.
        """
        with self._charged():
            wait_for(self.device)
            self.engine.settle()
            self.recorder.settle()

    @carried_out_by_all
    def change(self, recipe: Recipe) -> None:
        """Go on under a recipe that differs in knobs only: choices are swapped, weights and state stay."""
        self.recipe = self.batch_size.recipe = recipe
        # The model reads its objective at every step; optimizer and depth are read from the recipe.
        self.model.choice = recipe.objective

    def not_finite(self, what: str) -> NotFinite:
        """Return the error to raise when ``what`` is NaN or infinite before the next backward pass."""
        return not_finite(what, self.model, self.norm, self.optimizer, self.engine.overflow_advice)

    def close(self) -> None:
        """Let the data thread end."""
        self.batches.close()

    def plan(self, micro_step: int = 0) -> LayerPlan:
        """Return the plan of every layer in a micro-batch of the coming step."""
        layers, seed = self.recipe.architecture.layers, self.recipe.seed
        plan: LayerPlan = self.recipe.depth.plan(layers, self.progress, seed, micro_step)
        return plan

    def rehearse(self, rows: int) -> Tensor:
        """Return the loss, 0-d, of ``rows`` of the longest rows through all layers that there will be."""
        length = self.recipe.data.longest
        # Not the plan of the coming step: layers that appear or thaw later on must fit as well.
        plan = LayerPlan.full(self.recipe.architecture.layers)
        self.growth.follow(plan)
        everywhere = rows * self.engine.shares
        batch = self.assembled.rehearsal(StepShape(everywhere, length, everywhere)).to(self.device)
        torch.manual_seed(self.recipe.seed)
        with unchanged_buffers(self.model):
            found = self.engine.forward(self.model, batch, plan, self.progress)
        return found.over(dict.fromkeys(found.parts, rows * length))

    def _take_over(self) -> None:
        """Work on model and optimizer as they are now: at the beginning, and after a stage that replaced them."""
        self.model, self.optimizer = self.assembled.model, self.assembled.optimizer
        self.engine.exchange.watch(self.model, self.optimizer)
        self.meter = LayerMeter(self.model.stacks()["main"], self.optimizer, self._warn_once, self.engine.exchange)
        self._parameters = [p for group in self.optimizer.param_groups for p in group["params"]]

    def _measures_layers(self, before: Progress) -> bool:
        """Return True if this process measures the layers of the coming step, alone or with the others."""
        by = self.engine.exchange.layers_measured_by
        return by != "nobody" and (self.recorder.measures_layers if by == "all" else self.recorder.wants_layers)(before)

    def _warn_once(self, text: str) -> None:
        if self.recorder.writer is not None and text not in self._warnings:
            self.recorder.writer.event(self.progress.step, "warning", text)
            self._warnings.add(text)

    def _apply_schedules(self, shape: StepShape) -> dict[str, float]:
        """Write scheduled values into the optimizer; returns every scheduled knob's value."""
        rate = self.rate(self.progress, shape.rows)
        knobs: dict[str, float] = dict(self.recipe.optimizer.apply(self.optimizer, self.progress, rate))
        knobs |= self.batch_size.knobs(shape)
        for axis in (self.recipe.objective, self.recipe.depth):
            knobs |= {f"{axis.axis}.{path}": value for path, value in axis.scheduled_values(self.progress).items()}
        order = self.recipe.data.order.scheduled_values(self.progress)
        return knobs | {f"data.order.{path}": value for path, value in order.items()}

    def rate(self, progress: Progress, rows: int) -> float:
        """Return the learning rate of a step: schedule x warm-up of the depth method's stage x rule of the batch.

        Args:
            progress: before the step.
            rows: of its batch.
        """
        recipe, data = self.recipe, self.recipe.data
        stage: float = recipe.depth.rate_factor(recipe.architecture.layers, progress)
        return recipe.optimizer.lr_at(progress) * stage * data.batch_rule.rate_factor(rows, data.most_rows)

    def _gradients(self, batch: StepBatch, times: StepTimes, layered: bool) -> Gradients:
        """Forward and backward of every micro-batch; gradients are of the mean over all labels, or over a worker's."""
        labels = self.engine.readers.counted(step_counts(self.model, batch.parts, self.progress))
        counts = {name: max(1, count) for name, count in labels.items()}
        weights, parts = self.model.weights(self.progress), len(batch.parts)
        result = Gradients(counts, [], [], [])
        workers, own = self.recipe.optimizer.combine.count > 1, counts
        each = parts // self.engine.workers
        for index, part in enumerate(batch.parts):
            if workers and index % each == 0:
                labels = step_counts(self.model, batch.parts[index : index + each], self.progress)
                own = {name: max(1, count) for name, count in labels.items()}
            plan = self.plan(index % each)
            self.growth.follow(plan)
            self.meter.saw(plan)
            if layered and index == parts - 1:
                self.meter.before()
            found = self.engine.forward(self.model, part.to(self.device), plan, self.progress)
            loss = found.over(counts, weights)
            times.mark("forward")
            if index == parts - 1:
                self.engine.last(self.model, plan, whole=self.recorder.measures_layers(self.progress))
            self.engine.backward(found.over(own, weights) if workers else loss, parts)
            self.batch_size.after_part(self.progress, index, parts, self._parameters)
            times.mark("backward")
            result.losses.append(loss.detach())
            result.sums.append(found.detached())
            result.plans.append(plan)
            if index + 1 in range(each, parts, each):
                self._put_by(result, each)
        ranks = self.engine.ranks
        result.waited = ranks.apart(self._waited_ms, result.losses[0].device)
        sums = [*result.losses, *(x for each in result.sums for x in each.tensors())]
        # Where all read all rows, they are the same in all processes already.
        ranks.reduce([*(sums if self.engine.readers.size == ranks.size else ()), *result.waited])
        # Before the update, where looking costs nothing: the weights still show what broke them.
        for value in map(float, result.losses if self.device.type == "cpu" else ()):
            if not math.isfinite(value):
                raise self.not_finite(f"the loss became {value} at step {self.progress.step + 1}")
        return result

    def _put_by(self, result: Gradients, parts: int) -> None:
        """Let a worker of the optimizer, whose last so many micro-batches are done, make way for the next."""
        assert isinstance(self.optimizer, WorkersOptimizer)
        result.norms.append(self._clip())
        if self.recipe.depth.momentum_acts:
            zero_fill(self.model, result.plans[-parts:])
        self.optimizer.put_by()

    def _clip(self) -> Tensor | None:
        """Finish the gradients and clip them; returns their norm before clipping, 0-d."""
        self.engine.finish(self.optimizer)
        limit, measured = self.recipe.optimizer.clip_norm, self.recorder.wants_layers(self.progress)
        return clip(self._parameters, limit, self.engine.exchange, measured=measured)

    @contextmanager
    def _charged(self) -> Iterator[Callable[[], float]]:
        """Charge what happens inside to the run's seconds of training; yields the seconds so far."""
        began, seconds = time.perf_counter() - self.suspended_seconds, self.progress.seconds

        def elapsed() -> float:
            return time.perf_counter() - self.suspended_seconds - began

        yield elapsed
        # Every process has a clock of its own, and the budget may be one of seconds.
        self.progress = replace(self.progress, seconds=self.engine.ranks.agree(seconds + elapsed()))
