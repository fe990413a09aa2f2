"""A run simulated before it starts: batches, layers, schedules, FLOPs and seconds along its budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from workbench.choices.architectures.architecture import Architecture
from workbench.choices.data.tokens import Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.choices.progress import Progress
from workbench.choices.schedules.warmup_hold_decay import WarmupHoldDecay
from workbench.forecasting.footprint import Footprint, Sizes, footprint, optimizer_bytes, sizes
from workbench.forecasting.meta_tensors import ModelSpec
from workbench.forecasting.operations import Trace
from workbench.forecasting.pricing import Prices, micro_batch_seconds, priced
from workbench.forecasting.rates import Rates
from workbench.forecasting.settled import settled
from workbench.forecasting.trace import trace
from workbench.recipes.recipe import Recipe
from workbench.training.batch_size import BatchSize
from workbench.training.batches import StepShape

# Shape legend: B rows, T positions of a row.

POINTS = 50
"""Places along the budget at which a recipe is evaluated."""
DRAWS = 4
"""Micro-batches whose plans are averaged where layers are dropped at random."""
LENGTHS = 3
"""Row lengths that are traced at most; the cost of those between lies on straight lines."""

MODEL_COMPILE_SECONDS = 35.0
"""Processor seconds that compiling a model takes (LOG.md, 2026-11-21). Of eight recipes in
docs/results/forecast.json 15 to 47: timing three kernels on the machine and counting those of a trace was 58% off, 35
seconds are 34%."""


@dataclass
class Point:
    """One place along the budget.

    Attributes:
        progress: steps, tokens and seconds done by then.
        steps: that are taken from here to the next point (a share of one is possible).
        labels: N, labelled positions of a micro-batch.
        forward, backward: by layer of the finished model, the share of micro-batches in which it computes, and trains.
        knobs: learning rate and every knob that may move, by path.
        flops, seconds: of one step.
    """

    progress: Progress
    steps: float
    shape: StepShape
    labels: int
    forward: list[float]
    backward: list[float]
    knobs: dict[str, float]
    flops: float
    seconds: float


@dataclass
class SimulatedRun:
    """A whole run.

    Attributes:
        points: along the budget, evenly spaced in its unit.
    """

    points: list[Point] = field(default_factory=list)
    steps: float = 0.0
    tokens: float = 0.0
    flops: float = 0.0
    seconds: float = 0.0
    parameters: int = 0


class Simulator:
    """Simulates a recipe point by point along its budget.

    Attributes:
        refusal: why the run will most likely be refused at its start; empty where it will not be.
    """

    def __init__(self, recipe: Recipe, vocabulary: Vocabulary, attention: str, rates: Rates) -> None:
        self.recipe, self.vocabulary, self.attention, self.rates = recipe, vocabulary, attention, rates
        engine = recipe.engine()
        self.mode, self.head, self.memory_plan = engine.mode, engine.head, engine.memory
        # A GPU's calls run beside the work.
        self.launched = self.mode.device == "cuda"
        self.batches = BatchSize(recipe, engine.micro_batch_size)
        self._prices: dict[Any, tuple[Trace, Prices]] = {}
        self._costs: dict[Any, tuple[float, float]] = {}
        self._stages: dict[int, tuple[ModelSpec, Sizes]] = {}
        begin = Progress(step=0, tokens=0, seconds=0.0, budget=recipe.budget)
        places = (Progress(0, 0, 0.0, recipe.budget), *(_at(begin, i / POINTS) for i in range(POINTS)))
        lengths = sorted({self.batches.shape(place).length for place in places})
        middle = lengths[len(lengths) // 2]
        self._lengths = lengths if len(lengths) <= LENGTHS else sorted({lengths[0], middle, lengths[-1]})
        found = settled(engine, self._spec(recipe.architecture), rates.memory_bytes)
        self.memory_plan, self.refusal = found.memory, found.refusal
        self.batches = BatchSize(recipe, found.rows)

    def run(self) -> SimulatedRun:
        """Simulate from the first step to the last."""
        recipe, simulated = self.recipe, SimulatedRun()
        simulated.parameters = sizes(self._spec(recipe.architecture)).parameters
        progress = Progress(step=0, tokens=0, seconds=0.0, budget=recipe.budget)
        for index in range(POINTS):
            point = self._point(_at(progress, (index + 0.5) / POINTS))
            tokens, share = point.shape.tokens, recipe.budget.amount / POINTS
            per_step = {"steps": 1.0, "tokens": float(tokens), "seconds": point.seconds}[recipe.budget.unit]
            point.steps = share / per_step
            simulated.points.append(point)
            simulated.steps += point.steps
            simulated.tokens += point.steps * tokens
            simulated.flops += point.steps * point.flops
            simulated.seconds += point.steps * point.seconds
            progress = Progress(round(simulated.steps), round(simulated.tokens), simulated.seconds, recipe.budget)
        return simulated

    def memory(self, simulated: SimulatedRun) -> Footprint:
        """Return bytes of the largest step of a simulated run."""
        largest: dict[tuple[int, int], Point] = {}
        for point in simulated.points:
            # Of every stage and number of gradients, the largest micro-batch: only those few are traced.
            key = (self._stage(point.progress), sum(share > 0 for share in point.backward))
            size = (point.shape.part_rows * point.shape.length, point.shape.length)
            if key not in largest or size > (
                largest[key].shape.part_rows * largest[key].shape.length,
                largest[key].shape.length,
            ):
                largest[key] = point
        moving = len({(point.labels, point.shape) for point in simulated.points}) > 1
        return max((self._memory(point, moving) for point in largest.values()), key=lambda found: found.peak)

    def compile_seconds(self, simulated: SimulatedRun) -> float:
        """Return about what compiling takes where nothing of it is in the compiler's cache;
        0 where nothing is compiled.
        """
        if not self.mode.compiled:
            return 0.0
        # By architecture: a model that is widened compiles anew.
        models = len({self._stage_model(self._stage(point.progress))[0] for point in simulated.points})
        return MODEL_COMPILE_SECONDS * models

    def _point(self, progress: Progress) -> Point:
        recipe = self.recipe
        layers, seed = recipe.architecture.layers, recipe.seed
        stage = self._stage(progress)
        # One worker after the other goes through its share of a micro-batch.
        whole, workers = self.batches.shape(progress), recipe.optimizer.combine.count
        shape = whole._replace(part_rows=max(1, whole.part_rows // workers))
        first = recipe.depth.plan(layers, progress, seed)
        # One plan says it all unless layers are drawn.
        drawn = any(keep < 1 for keep in first.keep) or not all(first.runs)
        plans = [recipe.depth.plan(layers, progress, seed, draw) for draw in range(DRAWS)] if drawn else [first]
        labels = max(1, round(recipe.objective.labelled_fraction(progress) * shape.length)) * shape.part_rows
        parts = shape.rows // shape.part_rows
        phase = recipe.objective.phase(progress)
        costs = [self._micro_batch(stage, phase, plan, shape, labels) for plan in plans]
        flops, seconds = (parts * sum(each) / len(plans) for each in zip(*costs, strict=True))
        seconds = seconds * self.recipe.optimizer.passes + workers * self._update(stage, plans)
        knobs = {"optimizer.lr": recipe.optimizer.lr_at(progress) * recipe.depth.rate_factor(layers, progress)}
        for axis in (recipe.data, recipe.objective, recipe.depth, recipe.optimizer):
            knobs |= {f"{axis.axis}.{path}": value for path, value in axis.scheduled_values(progress).items()}
        knobs |= {"data.batch_size": float(shape.rows), "data.sequence_length": float(shape.length)}
        return Point(
            progress, 0.0, shape, labels, _mean(plans, layers, lambda p, i: p.runs[i]),
            _mean(plans, layers, lambda p, i: p.runs[i] and p.trains[i]), knobs, flops, seconds,
        )  # fmt: skip

    def _micro_batch(
        self, stage: int, phase: int, plan: LayerPlan, shape: StepShape, labels: int
    ) -> tuple[float, float]:
        """Return FLOPs and seconds of one."""
        # Scales and probabilities change with every step and cost nothing.
        key = (stage, phase, plan.runs, plan.trains, plan.embedding, plan.head, shape, labels)
        if key not in self._costs:
            architecture, length = self._stage_model(stage)[0].architecture, shape.length
            tokens = shape.part_rows * length
            size, objective = self.vocabulary.size, self.recipe.objective.in_phase(phase)
            flops = objective.flops(architecture, size, [plan], tokens, labels, length, length)
            self._costs[key] = flops, self._seconds(stage, plan, shape, labels)
        return self._costs[key]

    def _seconds(self, stage: int, plan: LayerPlan, shape: StepShape, labels: int) -> float:
        def at(length: int) -> float:
            found, prices = self._priced(stage, length, shape)
            rows = shape.part_rows / self._rows(length, shape)
            share = rows if self.head == "all" else labels * length / shape.length / found.labels
            return micro_batch_seconds(prices, plan, rows, share, self.memory_plan)

        below = max((t for t in self._lengths if t <= shape.length), default=self._lengths[0])
        above = min((t for t in self._lengths if t >= shape.length), default=self._lengths[-1])
        if below == above:
            return at(below)
        return at(below) + (at(above) - at(below)) * (shape.length - below) / (above - below)

    def _priced(self, stage: int, length: int, shape: StepShape) -> tuple[Trace, Prices]:
        rows = self._rows(length, shape)
        key = (stage, length, rows)
        if key not in self._prices:
            found = trace(self._stage_model(stage)[0], rows, length, self.mode.dtype)
            self._prices[key] = found, priced(found, self.rates, self.mode.compiled, self.launched)
        return self._prices[key]

    def _rows(self, length: int, shape: StepShape) -> int:
        """Return rows that are traced: the next power of two, so that a batch that grows is traced a few times only."""
        if isinstance(self.recipe.data.batch_size, int) and isinstance(self.recipe.data.sequence_length, int):
            return shape.part_rows
        return 1 << (shape.part_rows - 1).bit_length()

    def _memory(self, point: Point, moving: bool) -> Footprint:
        recipe = self.recipe
        spec, size = self._stage_model(self._stage(point.progress))
        plan = recipe.depth.plan(recipe.architecture.layers, point.progress, recipe.seed)
        found = trace(spec, point.shape.part_rows, point.shape.length, self.mode.dtype)
        workers = recipe.optimizer.combine.count
        state = workers * optimizer_bytes(_steady(recipe.optimizer), spec, self.memory_plan)
        # The weights of before, and updates that wait for others: one for each level of their tree.
        state += 4 * size.parameters * (workers.bit_length() + 1 if workers > 1 else 0)
        parts = point.shape.rows // point.shape.part_rows
        # The widest that chance allows: a plan that drops layers may drop none.
        worst = plan if all(keep == 1 for keep in plan.keep) else LayerPlan.full(plan.layers, plan.total)
        # The residual stream is float32.
        stream = 4 * spec.architecture.width * point.shape.part_rows * point.shape.length
        memory, compiled = self.memory_plan, self.mode.compiled
        return footprint(found, size, state, worst, parts, compiled, not self.launched, moving, memory, stream)

    def _update(self, stage: int, plans: list[LayerPlan]) -> float:
        """Return seconds of the optimizer's step; layers without gradients cost nothing."""
        spec, size = self._stage_model(stage)
        trains = _mean(plans, spec.architecture.layers, lambda plan, layer: plan.runs[layer] and plan.trains[layer])
        share = sum(trains) / max(1, len(trains))
        return self.rates.optimizers[self.recipe.optimizer.kind].seconds_of(
            size.matrices, size.vectors, size.tables, share
        )

    def _stage(self, progress: Progress) -> int:
        return int(self.recipe.depth.stage(self.recipe.architecture.layers, progress))

    def _stage_model(self, stage: int) -> tuple[ModelSpec, Sizes]:
        if stage not in self._stages:
            spec = self._spec(self.recipe.depth.architecture_at(self.recipe.architecture, stage))
            self._stages[stage] = spec, sizes(spec)
        return self._stages[stage]

    def _spec(self, architecture: Architecture) -> ModelSpec:
        recipe = self.recipe
        # With the attention that is traced: the same model then serves for its sizes.
        return ModelSpec(
            architecture, recipe.objective, self.vocabulary, recipe.data.longest, self.attention, self.head,
            self.memory_plan.operations,
        )  # fmt: skip


def _steady(choice: OptimizerChoice) -> OptimizerChoice:
    """Return the optimizer without what its state does not depend on, so that a learning rate is no new question."""
    return choice.model_copy(update={"lr": 1e-3, "schedule": WarmupHoldDecay(), "weight_decay": 0.01})


def _at(done: Progress, fraction: float) -> Progress:
    """Return ``done`` with the budget's own unit at a share of the budget."""
    amount = fraction * done.budget.amount
    spent: dict[str, float] = {"steps": done.step, "tokens": done.tokens, "seconds": done.seconds}
    spent[done.budget.unit] = amount
    return Progress(int(spent["steps"]), int(spent["tokens"]), spent["seconds"], done.budget)


def _mean(plans: list[LayerPlan], layers: int, of: Callable[[LayerPlan, int], bool]) -> list[float]:
    """Return share of the plans for which ``of`` is true, by layer; layers that do not exist yet have none."""
    return [sum(of(plan, i) for plan in plans if i < plan.layers) / len(plans) for i in range(layers)]
