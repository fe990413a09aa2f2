"""One of several processes that train a recipe's model as torch's own tutorial does: torchrun and DDP, no telemetry.

``torchrun --nproc-per-node 2 -m workbench.bench.plain_ddp RECIPE STEPS WARMUP`` prints the median of a step in ms.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_

from workbench.choices.data.prepare import prepare
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.engine import Engine
from workbench.choices.execution.ranks import Ranks
from workbench.choices.progress import Progress
from workbench.recipes.recipe import Recipe
from workbench.training.assemble import assemble
from workbench.training.batches import StepShape


def main(path: str, steps: int, warmup: int) -> None:
    """Train ``warmup`` + ``steps`` steps of the recipe in a file, in float32 or autocast as it says."""
    recipe, ranks = Recipe.load(Path(path)), Ranks(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    dist.init_process_group("gloo")
    engine = recipe.engine()
    # Rows are shared as ours are; gradients are DDP's business.
    Engine.join(engine, ranks)
    made = assemble(recipe, prepare(recipe.data, say=lambda line: None), engine)
    engine.compile(made.model)
    model = DistributedDataParallel(made.model)
    plan, rows, length = LayerPlan.full(recipe.architecture.layers), recipe.data.most_rows, recipe.data.longest
    batches, tokens, took = made.steps(), 0, []
    for step in range(warmup + steps):
        began = time.perf_counter()
        progress = Progress(step, tokens, 0.0, recipe.budget)
        (batch,) = batches.next(tokens, StepShape(rows, length, rows)).parts
        with engine.autocast():
            loss = model(batch, plan, progress)
        loss.over(made.model.counts(batch, progress)).backward()
        clip_grad_norm_(model.parameters(), recipe.optimizer.clip_norm or float("inf"))
        made.optimizer.step()
        made.optimizer.zero_grad(set_to_none=True)
        tokens += rows * length
        took.append(1e3 * (time.perf_counter() - began))
    batches.close()
    if ranks.rank == 0:
        print(statistics.median(took[warmup:]))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
