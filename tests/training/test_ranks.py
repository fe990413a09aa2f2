"""Two processes take the steps of one, and agree on when to end."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


Found = dict[str, Any]
"""``weights``, ``loss`` and ``progress`` of one process at the end of one recipe."""


def train(rank: int, recipes: dict[str, Recipe], folder: Path) -> None:
    """Train each recipe to its end as one of two processes; writes weights and record of each."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=SIZE)
    for name, recipe in recipes.items():
        engine = recipe.engine()
        engine.ranks = Ranks(rank, SIZE)
        training = Training(recipe, assemble(recipe, prepare(recipe.data, say=lambda line: None), engine))
        # Only the first is asked to stop, as by a signal.
        while not training.progress.done and not engine.ranks.agree(rank == 0 and training.progress.step == 40):
            training.step()
        training.close()
        found = {"weights": training.model.state_dict(), "loss": training.recorder.loss, "progress": training.progress}
        torch.save(found, folder / f"{name}-{rank}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def recipes(tiny: Recipe) -> dict[str, Recipe]:
    """One recipe per objective, one that ends by the clock, and one that is stopped."""
    made: dict[str, Recipe] = {
        objective: tiny.with_(objective=objective, architecture={"dropout": 0.0}, execution={"micro_batch_size": 8})
        for objective in ("masked", "causal")
    }
    return made | {"clock": tiny.with_(budget="1 seconds"), "stop": tiny.with_(budget="1000 steps")}


@pytest.fixture(scope="module")
def together(recipes: dict[str, Recipe], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Found]]:
    """What each of the two processes found, by recipe; they train all, since to start them takes the most time."""
    folder = tmp_path_factory.mktemp("ranks")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=train, args=(rank, recipes, folder)) for rank in range(SIZE)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(240)
        assert process.exitcode == 0
    return {
        name: [torch.load(folder / f"{name}-{rank}.pt", weights_only=False) for rank in range(SIZE)] for name in recipes
    }


@pytest.mark.process
@pytest.mark.parametrize("objective", ["masked", "causal"])
def test_two_processes_take_the_steps_of_one(
    together: dict[str, list[Found]], recipes: dict[str, Recipe], build: Callable[..., Training], objective: str
) -> None:
    alone = build(recipes[objective])
    while not alone.progress.done:
        alone.step()
    first, second = together[objective]
    assert first["progress"] == second["progress"]
    assert first["loss"] == pytest.approx(alone.recorder.loss, abs=1e-5)
    for name, weight in alone.model.state_dict().items():
        assert torch.equal(first["weights"][name], second["weights"][name])
        torch.testing.assert_close(first["weights"][name], weight, atol=1e-6, rtol=0)


@pytest.mark.process
@pytest.mark.parametrize("ending", ["clock", "stop"])
def test_they_agree_on_seconds_and_on_a_stop(together: dict[str, list[Found]], ending: str) -> None:
    first, second = together[ending]
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
