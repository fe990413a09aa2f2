"""Measure the cost of a step of every optimizer beside the fused AdamW that training would use, on a preset's shapes.

One process, in turns: every round takes one step of each, so that drift of clock and machine hits all alike. Two
clocks: the wall's, and this process's CPU time, which other processes disturb far less. Compilation is stated apart.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from workbench.base.errors import check_known
from workbench.bench.contender import note
from workbench.bench.harness import Bench, Options, in_turn
from workbench.bench.result import spread
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


def contenders(recipe: Recipe, kinds: Sequence[str]) -> dict[str, tuple[torch.optim.Optimizer, float]]:
    """Both AdamWs and one optimizer per kind over the same parameters, each with the seconds it took to compile: 0.

    LANS and LAMB stand there with each of their steps: the fused kernel, where it is installed, and ``(multi-tensor)``.
    All parameters have gradients.
    """
    size = recipe.data.tokenizer.vocabulary_size
    vocabulary = Vocabulary(size=size, used=size, pad=0, unk=1, cls=2, sep=3, mask=4)
    recipe = recipe.with_(execution={"attention": "plain"})
    model = build_model(recipe, recipe.architecture, vocabulary, recipe.engine())
    for parameter in model.parameters():
        parameter.grad = 1e-3 * torch.randn_like(parameter)
    optimizers: dict[str, tuple[torch.optim.Optimizer, float]] = {
        BASELINE: (build_optimizer(recipe.with_(optimizer={"kind": "adamw", "lr": 1e-4}), model, recipe.engine()), 0.0),
        FOREACH: (torch.optim.AdamW(model.parameter_groups(0.01), lr=1e-4, foreach=True), 0.0),
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
            optimizers[kind + suffix] = (optimizer, 0.0)
    return optimizers


def measure(recipe: Recipe, kinds: Sequence[str], *, rounds: int, threads: int) -> dict[str, Any]:
    """Alternate the optimizers for ``rounds`` rounds of one step each, on the recipe's device.

    Returns:
        ``{"parameters", "threads", "optimizers": {name: {"compile_seconds", "wall_ms", "cpu_ms", "ratio": {"wall",
        "cpu"}, "readings_ms"}}, ...}``; a ratio has ``median, min, max`` over the rounds, each the quotient of two
        steps of one round, and ``quiet``, the quotient of the lower deciles.
    """
    before, device = torch.get_num_threads(), recipe.execution.resolve_device()
    torch.set_num_threads(threads)
    try:
        stage = contenders(recipe, kinds)
        readings: dict[str, dict[str, list[float]]] = {name: {clock: [] for clock in CLOCKS} for name in stage}
        for number in range(-WARMUP, rounds):
            for name, (optimizer, _) in in_turn([*stage.items()], number):
                began = {clock: now() for clock, now in CLOCKS.items()}
                optimizer.step()
                wait_for(device)
                took = {clock: 1000 * (now() - began[clock]) for clock, now in CLOCKS.items()}
                if number >= 0:
                    for clock, milliseconds in took.items():
                        readings[name][clock].append(milliseconds)
    finally:
        torch.set_num_threads(before)
    first = next(iter(stage.values()))[0]
    return {
        "protocol": f"{rounds} alternating rounds of one step after {WARMUP} warm-up steps, one process",
        "recipe": recipe.to_dict(),
        "parameters": sum(p.numel() for group in first.param_groups for p in group["params"]),
        "device": device_name(device),
        "threads": threads,
        # Of the whole machine in the last minute: above the number of threads, others were at work.
        "load": os.getloadavg()[0],
        "optimizers": {
            name: {
                "compile_seconds": round(seconds, 2),
                **{f"{clock}_ms": spread(readings[name][clock]) for clock in CLOCKS},
                "ratio": {clock: _ratio(readings[name][clock], readings[BASELINE][clock]) for clock in CLOCKS},
                "readings_ms": readings[name],
            }
            for name, (_, seconds) in stage.items()
        },
    }


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """Spread of the quotients by round, and the quotient of the lower deciles: rounds that nothing disturbed."""
    paired = spread([a / b for a, b in zip(ours, theirs, strict=True)])
    quiet = [statistics.quantiles(values, n=10)[0] if len(values) > 1 else values[0] for values in (ours, theirs)]
    return {**paired, "quiet": quiet[0] / quiet[1]}


def _table(result: dict[str, Any], title: str) -> Table:
    table = Table(
        "optimizer", "ms (median)", "x fused AdamW, CPU time: median", "range", "quiet", "x, wall", "compiled in",
        title=f"{title}: {result['parameters'] / 1e6:.1f}M parameters, {result['threads']} thread(s)",
    )  # fmt: skip
    for name, figures in result["optimizers"].items():
        cpu, wall, took = figures["ratio"]["cpu"], figures["ratio"]["wall"], figures["compile_seconds"]
        spans = f"{cpu['min']:.2f} to {cpu['max']:.2f}"
        table.add_row(
            name, f"{figures['wall_ms']['median']:.1f}", f"{cpu['median']:.2f}", spans, f"{cpu['quiet']:.2f}",
            f"{wall['median']:.2f}", f"{took:.1f} s" if took > 0.05 else "",
        )  # fmt: skip
    return table


def _measured(options: Options) -> dict[str, Any]:
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


def _show(result: Mapping[str, Any], console: Console, _path: Path) -> None:
    for each in result["results"]:
        console.print(_table(each, each["recipe"]["name"]))


main = Bench(
    "optimizer_steps", __doc__, _measured, _show, rounds=30,
    options={
        "--preset": {"action": "append", "help": "whose shapes; may be repeated (bert_tiny and bert_base)"},
        "--layers": {"type": int, "help": "cut or stretch to this many layers (bert_base: 2 by default)"},
        "--optimizers": {"nargs": "+", "metavar": "KIND", "help": "only these; all by default"},
        "--threads": {"type": int, "nargs": "+", "default": [1, 2]},
        "--device": {"choices": ("cpu", "cuda"), "default": "cpu"},
    },
).main  # fmt: skip
