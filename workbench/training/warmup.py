"""Compile before the clock starts: every graph that training will use is met once on real batches."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from workbench.base.cache_folder import cache_folder
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.objective import TrainingModel
from workbench.choices.progress import LOOK_AHEAD, Progress, progress_at
from workbench.ops.compiled_cache import mending, probe_instructions
from workbench.ops.remembered import FOLDER, recalled, remember, subject_of
from workbench.ops.timing import wait_for
from workbench.telemetry.streams import number
from workbench.training.batches import StepShape
from workbench.training.gradients import unchanged_buffers
from workbench.training.loop import Training
from workbench.training.measurements import forget_peak

NAME = "compilation"
"""Name of the file in which its time is remembered."""


def compile_ahead(training: Training) -> float:
    """Compile the model and run it forward and backward as training will; returns the seconds it took.

    Gradients are discarded and the optimizer is not called, so weights, its state and the run's progress stay what
    they were. Layers may be dropped, frozen or not grown yet later on, and the model may be a wider one: one pass per
    model and per set of things that layers do, and as many as it takes to meet two numbers of rows, of tokens per row
    and of labels, each with all existing layers running. Waits for the other processes of the run.
    """
    began = time.perf_counter()
    if training.engine.compiled and training.engine.device.type == "cpu":
        probe_instructions(cache_folder() / FOLDER)
    with unchanged_buffers(training.assembled.model):
        mending(lambda: _meet_graphs(training))
    wait_for(training.engine.device)
    training.engine.ranks.meet()
    forget_peak(training.engine.device)
    seconds = time.perf_counter() - began
    if training.engine.compiled:
        remember(cache_folder() / FOLDER, NAME, _subject(training), {"seconds": round(seconds, 1)}, 0.0)
    return seconds


def usual_time(training: Training) -> str:
    """Return in words how long :func:`compile_ahead` takes for such a model here: as it did the last time."""
    record = recalled(cache_folder() / FOLDER, NAME, _subject(training))
    seconds = number(record.value.get("seconds")) if record else math.nan
    return (
        f"it took {seconds:.0f} s the last time"
        if math.isfinite(seconds)
        else "one to three minutes, longer beside other work"
    )


def _subject(training: Training) -> dict[str, Any]:
    """Return all that decides which graphs are met."""
    recipe, engine = training.recipe, training.engine
    parts = {axis: getattr(recipe, axis).model_dump(mode="json") for axis in ("objective", "architecture")}
    parts["execution"] = recipe.execution.graph_knobs()
    data = {"rows": recipe.data.most_rows, "length": recipe.data.longest, "depth": type(recipe.depth).__name__}
    return subject_of(engine.device, attention=engine.attention, **parts, **data)


def _meet_graphs(training: Training) -> None:
    recipe, assembled, engine = training.recipe, training.assembled, training.engine
    models: list[TrainingModel] = []
    for plan, progress, shape in _variants(training):
        model = training.growth.model_of(recipe, recipe.depth.stage(recipe.architecture.layers, progress))
        if model not in models:
            models.append(model)
            engine.compile(model)
        training.growth.follow(plan, model)
        # Any rows would do: only the shapes matter.
        batch = assembled.rehearsal(shape).to(engine.device)
        # Dropout draws here; every step seeds itself, so nothing of it is left.
        torch.manual_seed(recipe.seed)
        loss = engine.forward(model, batch, plan, progress)
        engine.backward(loss.over(dict.fromkeys(loss.parts, 1)))
        model.zero_grad(set_to_none=True)
        engine.exchange.forget()


def _variants(training: Training) -> Iterator[tuple[LayerPlan, Progress, StepShape]]:
    recipe, layers = training.recipe, training.recipe.architecture.layers
    seen: dict[Any, tuple[set[int], ...]] = {}
    for point in _points(recipe.depth.starts()):
        progress = progress_at(recipe.budget, point)
        stage = recipe.depth.stage(layers, progress)
        if stage < training.assembled.stage:
            continue  # of a resumed run: over
        plan = recipe.depth.plan(layers, progress, recipe.seed)
        # A dropped layer is never called: dropping needs no graph, only what trains and how many labels there are do.
        plan = replace(plan, runs=(True,) * plan.layers)
        key = (training.growth.model_of(recipe, stage), _roles(plan), plan.embedding, plan.head)
        met = seen.setdefault(key, (set(), set(), set()))
        for shape in training.batch_size.shapes(progress):
            labels = round(recipe.objective.labelled_fraction(progress) * shape.length)
            sizes = (shape.part_rows, shape.length, labels)
            # The second number in a place makes that dimension dynamic: a third one compiles nothing. Measured on a CPU
            # (pre-norm, 4 x 256, 16 rows): a dynamic step takes 0-15% longer per token than one compiled for its size.
            if any(size not in known and len(known) < 2 for size, known in zip(sizes, met, strict=True)):
                for size, known in zip(sizes, met, strict=True):
                    known.add(size)
                yield plan, progress, shape._replace(rows=shape.part_rows)


def _points(starts: Sequence[float]) -> list[float]:
    """Return shares of the budget to look at: evenly spread, and the middle of every stage, since one may be short."""
    middles = [(start + end) / 2 for start, end in zip(starts, [*starts[1:], 1.0], strict=True)]
    return sorted({point / LOOK_AHEAD for point in range(LOOK_AHEAD)} | set(middles))


def _roles(plan: LayerPlan) -> frozenset[tuple[bool, bool, bool, bool]]:
    """Return the roles of a plan's layers: equal layers in equal roles share one graph, however many they are.

    By layer: whether it trains, whether gradients pass it, whether its input needs them, whether it is the last.
    """
    first = plan.trains.index(True) if True in plan.trains else plan.layers
    return frozenset(
        (trains, layer >= first, layer > first or (layer == 0 and plan.embedding), layer == plan.layers - 1)
        for layer, trains in enumerate(plan.trains)
    )
