"""Measure the cost of a step of every optimizer beside the fused AdamW that training would use, on a preset's shapes.

One process, in turns: every round takes one step of each, so that drift of clock and machine hits all alike. Two
clocks: the wall's, and this process's CPU time, which other processes disturb far less.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from workbench.base.errors import check_known
from workbench.bench.contender import note
from workbench.bench.result import spread
from workbench.bench.rounds import alternate, ratios
from workbench.bench.table import Options
from workbench.choices.choice import registry
from workbench.choices.data.tokens import Vocabulary
from workbench.choices.optimizers.layerwise import LayerwiseOptimizer
from workbench.ops.remembered import device_name
from workbench.ops.timing import wait_for
from workbench.recipes import presets
from workbench.recipes.recipe import Recipe
from workbench.training.assemble import build_model, build_optimizer

BASELINE = "adamw (fused)"
"""The choice ``adamw``, which is torch's fused one: what all others are measured against."""
FOREACH = "adamw (foreach)"
"""torch's multi-tensor AdamW, one line of the table: many times slower on a CPU, so no optimizer shines beside it."""

WARMUP = 2
"""Rounds that are not counted."""
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


def contenders(recipe: Recipe, kinds: Sequence[str]) -> dict[str, torch.optim.Optimizer]:
    """Return both AdamWs and one optimizer per kind over the same parameters.

    LANS and LAMB stand there with each of their steps: the fused kernel, where it is installed, and ``(multi-tensor)``.
    All parameters have gradients.
    """
    size = recipe.data.tokenizer.vocabulary_size
    vocabulary = Vocabulary(size=size, used=size, pad=0, unk=1, cls=2, sep=3, mask=4)
    recipe = recipe.with_(execution={"attention": "plain"})
    model = build_model(recipe, recipe.architecture, vocabulary, recipe.engine())
    for parameter in model.parameters():
        parameter.grad = 1e-3 * torch.randn_like(parameter)
    optimizers: dict[str, torch.optim.Optimizer] = {
        BASELINE: build_optimizer(recipe.with_(optimizer={"kind": "adamw", "lr": 1e-4}), model, recipe.engine()),
        FOREACH: torch.optim.AdamW(model.parameter_groups(0.01), lr=1e-4, foreach=True),
    }
    for kind in kinds:
        if kind == "adamw":
            continue  # the baseline itself
        for suffix, fused in (("", True), (" (multi-tensor)", False)):
            optimizer = build_optimizer(recipe.with_(optimizer={"kind": kind, "lr": 1e-4}), model, recipe.engine())
            if isinstance(optimizer, LayerwiseOptimizer):
                optimizer.fused = fused
                if fused and optimizer.kernel(recipe.execution.resolve_device()) is None:
                    continue
            elif suffix:
                continue
            optimizers[kind + suffix] = optimizer
    return optimizers


def _step(optimizer: torch.optim.Optimizer, device: torch.device) -> dict[str, float]:
    """Take a step; return its milliseconds by clock."""
    began = {clock: now() for clock, now in CLOCKS.items()}
    optimizer.step()
    wait_for(device)
    return {clock: 1000 * (now() - began[clock]) for clock, now in CLOCKS.items()}


def measure(recipe: Recipe, kinds: Sequence[str], *, rounds: int, threads: int) -> dict[str, Any]:
    """Alternate the optimizers for ``rounds`` rounds of one step each, on the recipe's device.

    Returns:
        ``{"parameters", "threads", "optimizers": {name: {"wall_ms", "cpu_ms", "ratio": {"wall",
        "cpu"}, "readings_ms"}}, ...}``; a ratio has ``median, min, max`` over the rounds, each the quotient of two
        steps of one round, and ``quiet``, the quotient of the lower deciles.
    """
    before, device = torch.get_num_threads(), recipe.execution.resolve_device()
    torch.set_num_threads(threads)
    try:
        stage = contenders(recipe, kinds)
        taken = alternate({name: partial(_step, each, device) for name, each in stage.items()}, WARMUP + rounds)
    finally:
        torch.set_num_threads(before)
    readings = {
        name: {clock: [each[clock] for each in steps[WARMUP:]] for clock in CLOCKS} for name, steps in taken.items()
    }
    return {
        "protocol": f"{rounds} alternating rounds of one step after {WARMUP} warm-up steps, one process",
        "recipe": recipe.to_dict(),
        "parameters": sum(p.numel() for group in stage[BASELINE].param_groups for p in group["params"]),
        "device": device_name(device),
        "threads": threads,
        # Of the whole machine in the last minute: above the number of threads, others were at work.
        "load": os.getloadavg()[0],
        "optimizers": {
            name: {
                **{f"{clock}_ms": spread(readings[name][clock]) for clock in CLOCKS},
                "ratio": {clock: _ratio(readings[name][clock], readings[BASELINE][clock]) for clock in CLOCKS},
                "readings_ms": readings[name],
            }
            for name in stage
        },
    }


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """Return spread of the quotients by round, and the quotient of the lower deciles: rounds that nothing disturbed."""
    quiet = [statistics.quantiles(values, n=10)[0] if len(values) > 1 else values[0] for values in (ours, theirs)]
    return {**ratios(ours, theirs), "quiet": quiet[0] / quiet[1]}


def measured(options: Options) -> dict[str, Any]:
    """Measure what the options ask for."""
    kinds = options.optimizers or list(registry("optimizer"))
    for kind in kinds:
        check_known("optimizer", kind, registry("optimizer"))
    results = []
    for preset in options.preset or ["bert_tiny", "bert_base"]:
        recipe = presets.get(preset)
        # Two of bert_base's layers are 38M parameters: every optimizer's state at once still fits a laptop.
        layers = options.layers or (2 if preset == "bert_base" else recipe.architecture.layers)
        recipe = recipe.with_(architecture={"layers": layers}, execution={"device": options.device})
        for threads in options.threads:
            note(f"{preset}, {threads} thread(s)")
            results.append(measure(recipe, kinds, rounds=options.rounds, threads=threads))
            # Gigabytes of state, some of it in cycles.
            gc.collect()
    return {"results": results}
