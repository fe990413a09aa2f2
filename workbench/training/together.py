"""Several processes that train one run: rank 0 is the run's session, the others take its steps with it.

Everything between two steps is decided and written by rank 0: requests, evaluations, checkpoints, pauses, the end. It
tells the others what to do, see :meth:`workbench.choices.execution.ranks.Ranks.follow`; of the run's
folder they write their logs alone.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import Any

import torch

from workbench.choices.data.prepare import prepare
from workbench.choices.execution.ranks import Ranks
from workbench.choices.progress import Progress
from workbench.ops.remembered import device_name
from workbench.recipes.recipe import Recipe
from workbench.training import checkpoint
from workbench.training.assemble import assemble
from workbench.training.forks import check_data
from workbench.training.growth import enter
from workbench.training.loop import Training
from workbench.training.warmup import compile_ahead


def share_cores(recipe: Recipe, processes: int) -> None:
    """Give this process its share of the threads, unless the recipe says how many each has."""
    if recipe.execution.threads is None:
        # Of those processes that are on this machine, as torchrun says.
        here = int(os.environ.get("LOCAL_WORLD_SIZE", processes))
        torch.set_num_threads(max(1, torch.get_num_threads() // here))


@dataclass(frozen=True)
class Beginning:
    """All that the other processes need to know to begin where rank 0 begins, beside weights and optimizer state.

    Attributes:
        run: id. launched, recipe: as launched, and with the knobs that were turned since.
        environment: of the run, with what its engine has settled.
        progress, stage: before the first step.
        states: what growth, batch size and position say of themselves, by argument of :class:`Training`.
        engine: what it says of itself.
        tied, optimizer: what :func:`checkpoint.model_tensors` and :func:`checkpoint.optimizer_tensors` say beside
            tensors.
    """

    run: str
    launched: Recipe
    recipe: Recipe
    environment: dict[str, Any]
    progress: Progress
    stage: int
    states: dict[str, Any]
    engine: dict[str, Any]
    tied: dict[str, str]
    optimizer: dict[str, Any]


def lead(training: Training, run: str, launched: Recipe, environment: dict[str, Any]) -> None:
    """Have the other processes, if there are any, begin as this one, rank 0; they warm up as it does.

    Args:
        training: restored, before its first step.
        run: id of the run.
        launched: its recipe without knobs turned since.
        environment: of the run.
    """
    engine, assembled = training.engine, training.assembled
    if engine.ranks.size == 1:
        return
    model, tied = checkpoint.model_tensors(training.model)
    tensors, rest = checkpoint.optimizer_tensors(training.optimizer)
    growth, batch, position = (each.state() for each in (training.growth, training.batch_size, training.batches))
    begun = Beginning(
        run=run,
        launched=launched,
        recipe=training.recipe,
        environment=environment | engine.described(),
        progress=training.progress,
        stage=assembled.stage,
        states={"grown": growth, "batch": batch, "position": position},
        engine=engine.state(),
        tied=tied,
        optimizer=rest,
    )
    engine.ranks.agree(begun)
    for each in (model, tensors, assembled.average):
        engine.ranks.share(each)


def follow(ranks: Ranks) -> None:
    """Train as one of several processes and not the first, until the run ends.

    Raises:
        ProcessEnded: another process has ended before the run did.
        CheckpointError: the prepared text here is not that of rank 0.
    """
    # Whoever stops a run tells all of its processes; rank 0 takes one more step with them, and a checkpoint.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    begun: Any = ranks.agree(None)
    launched = begun.launched
    share_cores(launched, ranks.size)
    # After rank 0: what is prepared already is only read.
    prepared = prepare(launched.data, say=print)
    check_data(begun.run, begun.environment["data"], prepared.fingerprint)
    engine = launched.engine()
    engine = engine.resume(begun.environment | {"device": device_name(engine.device)})
    engine.join(ranks)
    assembled = assemble(launched, prepared, engine)
    enter(launched, assembled, begun.stage)
    checkpoint.restore_model(assembled.model, ranks.share({}), begun.tied)
    checkpoint.restore_optimizer(assembled.optimizer, ranks.share({}), begun.optimizer)
    assembled.average |= {name: tensor.to(engine.device) for name, tensor in ranks.share({}).items()}
    training = Training(begun.recipe, assembled, progress=begun.progress, **begun.states)
    engine.restore(begun.engine)
    try:
        compile_ahead(training)
        ranks.follow(training)
        print(f"process {ranks.rank} of {ranks.size} ends with the run, after step {training.progress.step}")
    finally:
        training.close()
