"""Compile before the clock starts: every graph that training will use is met once on real batches."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import torch

from workbench.choices.depth.plan import LayerPlan
from workbench.choices.progress import Budget, Progress
from workbench.training.assemble import micro_batch_size
from workbench.training.batches import step_batch
from workbench.training.loop import Training

LOOK_AHEAD = 32
"""Points of the budget at which the depth method and the objective are asked what the run will look like."""


def compile_ahead(training: Training) -> float:
    """Compile the model and run it forward and backward as training will; returns the seconds it took.

    Gradients are discarded and the optimizer is not called, so weights, its state and the run's progress stay what
    they were. Layers may be dropped, frozen or not grown yet later on: one pass per set of layers that train and for
    each of the first two numbers of labels, each with all of its layers running.
    """
    began = time.perf_counter()
    recipe, made = training.recipe, training.made
    if recipe.execution.compile:
        made.model.compile()
    rows = micro_batch_size(recipe)
    # One micro-batch beyond the prefetched ones would do as well: only the shapes matter.
    batch = step_batch(made.order, training.progress.step, rows, rows).parts[0].to(made.device)
    for plan, progress in _variants(training):
        # Dropout draws here; every step seeds itself, so nothing of it is left.
        torch.manual_seed(recipe.seed)
        with made.autocast():
            loss = made.model(batch, plan, progress)
        # As in a step: the scale factor is a number of its own, so the graph is the same.
        training.scaler.scale(loss.loss * 1.0).backward()
    training.optimizer.zero_grad(set_to_none=True)
    if made.device.type == "cuda":
        torch.cuda.synchronize(made.device)
    return time.perf_counter() - began


def _variants(training: Training) -> Iterator[tuple[LayerPlan, Progress]]:
    recipe = training.recipe
    seen: dict[tuple[bool, ...], set[int]] = {}
    for point in range(LOOK_AHEAD):
        progress = _progress_at(recipe.budget, point / LOOK_AHEAD)
        plan = recipe.depth.plan(recipe.architecture.layers, progress, recipe.seed)
        # A dropped layer is never called: dropping needs no graph, only what trains and how many labels there are do.
        plan = replace(plan, runs=(True,) * plan.layers)
        # To the hundredth: a rate that glides must not be compiled point by point.
        labelled = seen.setdefault(plan.trains, set())
        labels = round(recipe.objective.labelled_fraction(progress) * recipe.data.sequence_length)
        # The second number of labels makes their dimension dynamic: a third one compiles nothing.
        if labels not in labelled and len(labelled) < 2:
            labelled.add(labels)
            yield plan, progress


def _progress_at(budget: Budget, fraction: float) -> Progress:
    """Where a run stands when that share of its budget is spent; the other units are left at 0."""
    amount = fraction * budget.amount
    spent = {unit: amount if unit == budget.unit else 0.0 for unit in ("steps", "tokens", "seconds")}
    return Progress(step=int(spent["steps"]), tokens=int(spent["tokens"]), seconds=spent["seconds"], budget=budget)
