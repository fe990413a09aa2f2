"""Two processes take the steps of one, and agree on when to end."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from workbench.base.errors import DataError
from workbench.choices.data.prepare import prepare
from workbench.choices.execution.ranks import Ranks
from workbench.recipes.recipe import Recipe
from workbench.training.assemble import assemble
from workbench.training.loop import Training

SIZE = 2


def train(rank: int, recipe: Recipe, folder: Path) -> None:
    """Train to the end of the budget as one of two processes; writes weights and record."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=SIZE)
    engine = recipe.engine()
    engine.ranks = Ranks(rank, SIZE)
    training = Training(recipe, assemble(recipe, prepare(recipe.data, say=lambda line: None), engine))
    # Only the first is asked to stop, as by a signal.
    while not training.progress.done and not engine.ranks.agree(rank == 0 and training.progress.step == 40):
        training.step()
    training.close()
    found = {"weights": training.model.state_dict(), "loss": training.recorder.loss, "progress": training.progress}
    torch.save(found, folder / f"{rank}.pt")
    dist.destroy_process_group()


def together(recipe: Recipe, folder: Path) -> list[dict[str, object]]:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=train, args=(rank, recipe, folder)) for rank in range(SIZE)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(SIZE)]


@pytest.mark.process
@pytest.mark.parametrize("objective", ["masked", "causal"])
def test_two_processes_take_the_steps_of_one(
    tiny: Recipe, build: Callable[..., Training], tmp_path: Path, objective: str
) -> None:
    recipe = tiny.with_(objective=objective, architecture={"dropout": 0.0}, execution={"micro_batch_size": 8})
    alone = build(recipe)
    while not alone.progress.done:
        alone.step()
    first, second = together(recipe, tmp_path)
    assert first["progress"] == second["progress"]
    assert first["loss"] == pytest.approx(alone.recorder.loss, abs=1e-5)
    for name, weight in alone.model.state_dict().items():
        assert torch.equal(first["weights"][name], second["weights"][name])
        torch.testing.assert_close(first["weights"][name], weight, atol=1e-6, rtol=0)


@pytest.mark.process
@pytest.mark.parametrize("budget", ["1 seconds", "1000 steps"])
def test_they_agree_on_seconds_and_on_a_stop(tiny: Recipe, tmp_path: Path, budget: str) -> None:
    first, second = together(tiny.with_(budget=budget), tmp_path)
    assert first["progress"] == second["progress"]
    assert 0 < first["progress"].step <= 40


def test_too_few_rows_for_the_processes(tiny: Recipe) -> None:
    engine = tiny.engine()
    engine.ranks = Ranks(0, 32)
    made = assemble(tiny, prepare(tiny.data, say=lambda line: None), engine)
    training = Training(tiny, made)
    with pytest.raises(DataError, match="micro-batches of 16 rows cannot be shared by 32 processes"):
        training.batches.next(0, training.batch_size.shape(training.progress))
    training.close()
