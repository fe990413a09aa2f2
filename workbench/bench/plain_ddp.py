"""Two processes of this machine under torchrun: our steps beside those of torch's own DDP, in turns.

Both train one recipe in the same two processes, one thread each: ours as a run does, with all of its telemetry; plain
as torch's tutorial does, with ``DistributedDataParallel``, AdamW and nothing else. Blocks of steps alternate, so that a
neighbour on the machine hits both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_

from workbench.bench.harness import recipe_of
from workbench.bench.result import spread, verdict
from workbench.bench.rounds import alternate
from workbench.bench.table import Options
from workbench.choices.data.prepare import prepare
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.engine import Engine
from workbench.choices.execution.ranks import Ranks
from workbench.choices.progress import Progress
from workbench.recipes.recipe import Recipe
from workbench.telemetry.streams import TelemetryWriter
from workbench.training.assemble import assemble
from workbench.training.batches import StepShape
from workbench.training.loop import Training
from workbench.training.warmup import compile_ahead

QUANTILE = 0.2
"""Quantile of a contender's steps that counts on a shared machine, whose neighbours only ever add time."""
Block = Callable[[int], list[float]]
"""Takes so many steps; returns the seconds of each."""


def ours(recipe: Recipe, ranks: Ranks, folder: Path) -> Block:
    """Return our blocks of steps; the first process writes telemetry, the others follow it."""
    engine = recipe.engine()
    engine.join(ranks)
    assembled = assemble(recipe, prepare(recipe.data, say=lambda line: None), engine)
    writer = TelemetryWriter(folder) if ranks.rank == 0 else None
    training = Training(recipe, assembled, writer, peak_flops=1e12)
    compile_ahead(training)

    def block(steps: int) -> list[float]:
        if ranks.rank:
            ranks.follow(training)
            return []
        took = [_timed(training.step) for _ in range(steps)]
        training.settle()
        ranks.dismiss()
        return took

    return block


def plain(recipe: Recipe, ranks: Ranks) -> Block:
    """Return blocks of steps of torch's DDP, on our rows, in float32 or autocast as the recipe says."""
    engine = recipe.engine()
    # Rows are shared as ours are; gradients are DDP's business.
    Engine.join(engine, ranks)
    made = assemble(recipe, prepare(recipe.data, say=lambda line: None), engine)
    engine.compile(made.model)
    model = DistributedDataParallel(made.model)
    plan, rows, length = LayerPlan.full(recipe.architecture.layers), recipe.data.most_rows, recipe.data.longest
    batches, taken = made.steps(), 0

    def step() -> None:
        nonlocal taken
        progress = Progress(taken, taken * rows * length, 0.0, recipe.budget)
        (batch,) = batches.next(progress.tokens, StepShape(rows, length, rows)).parts
        with engine.autocast():
            loss = model(batch, plan, progress)
        loss.over(made.model.counts(batch, progress)).backward()
        clip_grad_norm_(model.parameters(), recipe.optimizer.clip_norm or float("inf"))
        made.optimizer.step()
        made.optimizer.zero_grad(set_to_none=True)
        taken += 1

    return lambda steps: [_timed(step) for _ in range(steps)]


def train(recipe: Recipe, rounds: int, steps: int, folder: Path) -> dict[str, list[list[float]]]:
    """Take turns in this process, one of those that torchrun started; returns seconds by contender, round and step."""
    ranks = Ranks(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    dist.init_process_group("gloo")
    blocks = {"ours": ours(recipe, ranks, folder), "plain": plain(recipe, ranks)}
    for block in blocks.values():
        block(steps)
    return alternate({name: partial(block, steps) for name, block in blocks.items()}, rounds)


def _timed(step: Callable[[], None]) -> float:
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def measured(options: Options) -> dict[str, Any]:
    """Measure what the options ask for."""
    recipe = recipe_of(options)
    recipe = recipe.with_(
        budget=f"{(options.rounds + 1) * options.steps} steps",
        execution={"threads": 1, "micro_batch_size": recipe.data.most_rows},
    )
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "recipe.json"
        path.write_text(recipe.to_json(), encoding="utf-8")
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        command = [*torchrun, "-m", "workbench.bench.plain_ddp", str(path), str(options.rounds), str(options.steps)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    took = {name: np.array(seconds) for name, seconds in json.loads(done.stdout.splitlines()[-1]).items()}
    low = {name: 1e3 * float(np.quantile(seconds_RS, QUANTILE)) for name, seconds_RS in took.items()}
    pairs = np.median(took["ours"], axis=1) / np.median(took["plain"], axis=1)
    return {
        "recipe": recipe.to_dict(), "rounds": options.rounds, "steps": options.steps, "quantile": QUANTILE,
        "step_ms": low, "undisturbed": (ratio := low["ours"] / low["plain"]), "by_round": spread(pairs.tolist()),
        "verdicts": [verdict("time of a step beside plain DDP", ratio, "<=", 1.03, "x")],
    }  # fmt: skip


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as telemetry:
        found = train(Recipe.load(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3]), Path(telemetry))
    if os.environ["RANK"] == "0":
        print(json.dumps(found))
