"""Processes that have joined once and then do case after case together: joining is what takes time."""

from __future__ import annotations

import multiprocessing
import os
import socket
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch

from workbench.choices.data.prepare import prepare
from workbench.choices.execution.ranks import Ranks
from workbench.choices.progress import Progress
from workbench.recipes.recipe import Recipe
from workbench.training import checkpoint
from workbench.training.assemble import assemble
from workbench.training.growth import enter
from workbench.training.loop import Training

_forks = multiprocessing.get_context("forkserver")


class ProcessGroup:
    """So many joined processes, each with one thread; use as a context.

    Args:
        size: processes.
    """

    def __init__(self, size: int) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        there = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo"}
        self._pipes: list[Connection] = []
        self._processes = []
        for rank in range(size):
            ours, theirs = _forks.Pipe()
            process = _forks.Process(target=_serve, args=(rank, size, theirs, os.environ | there), daemon=True)
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)

    def __enter__(self) -> ProcessGroup:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.join()

    def __call__(self, what: Callable[..., Any], *args: Any, seconds: float = 120) -> list[Any]:
        """Return what ``what(ranks, *args)`` returns in every process, by rank."""
        for pipe in self._pipes:
            pipe.send((what, args))
        answers = []
        for rank, pipe in enumerate(self._pipes):
            assert pipe.poll(seconds), f"process {rank} does not answer"
            done, answer = pipe.recv()
            assert done, f"process {rank}: {answer}"
            answers.append(answer)
        return answers


def _serve(rank: int, size: int, pipe: Connection, environment: Mapping[str, str]) -> None:
    os.environ.update(environment)
    torch.set_num_threads(1)
    ranks = Ranks.join(rank, size)
    while True:
        what, args = pipe.recv()
        try:
            pipe.send((True, what(ranks, *args)))
        except BaseException:
            pipe.send((False, traceback.format_exc()))


def trained(ranks: Ranks, fields: Mapping[str, Any], steps: int = 10, begin: Mapping[str, Any] | None = None) -> Any:
    """Train a recipe for some steps, as one of ``ranks``.

    Args:
        fields: of the recipe. begin: what an earlier call returned, to go on from; None for the beginning.

    Returns:
        ``losses``, ``weights`` and ``optimizer`` by name, as numpy; ``held`` and ``weigh``, bytes of moments and of
        weights after the last step; and what else a checkpoint holds.
    """
    recipe = Recipe(**fields)
    engine = recipe.engine()
    engine.join(ranks)
    assembled = assemble(recipe, prepare(recipe.data, say=lambda line: None), engine)
    arguments: dict[str, Any] = {}
    if begin is not None:
        enter(recipe, assembled, begin["grown"]["stage"])
        checkpoint.restore_model(assembled.model, _tensors(begin["weights"]), begin["tied"])
        checkpoint.restore_optimizer(assembled.optimizer, _tensors(begin["optimizer"]), begin["rest"])
        step, tokens = begin["progress"]
        progress = Progress(step=step, tokens=tokens, seconds=0.0, budget=recipe.budget)
        arguments = {"progress": progress, "grown": begin["grown"], "batch": begin["batch"]}
    training = Training(recipe, assembled, **arguments)
    losses: list[float] = []
    told: list[dict[str, float]] = []
    take = training.recorder.take

    held, seeds, weigh = 0, [], 0

    def kept(record: Any) -> None:
        nonlocal held, weigh
        held = sum(x.nbytes for state in training.optimizer.state.values() for x in state.values() if x.ndim)
        weigh = sum(x.untyped_storage().nbytes() for x in training.model.parameters())
        seeds.append(torch.initial_seed())
        losses.append(float(record.loss))
        told.append(dict(record.knobs))
        take(record)

    training.recorder.take = kept  # type: ignore[method-assign]
    if ranks.rank == 0:
        for _ in range(steps):
            training.step()
        training.settle()
        ranks.dismiss()
    else:
        ranks.follow(training)
    weights, tied = checkpoint.model_tensors(training.model)
    state, rest = checkpoint.optimizer_tensors(training.optimizer)
    training.close()
    return {
        "losses": losses, "told": told, "weights": _arrays(weights), "tied": tied, "optimizer": _arrays(state),
        "rest": rest, "held": held, "weigh": weigh, "seeds": seeds, "grown": training.growth.state(),
        "batch": training.batch_size.state(), "average": _arrays(assembled.average),
        "progress": (training.progress.step, training.progress.tokens),
    }  # fmt: skip


def assert_same_training(ours: Mapping[str, Any], theirs: Mapping[str, Any], most: float = 1e-5) -> None:
    """Assert that losses and the weights after the last step agree to ``most``."""
    np.testing.assert_allclose(ours["losses"], theirs["losses"], atol=most, rtol=most / 10)
    assert ours["weights"].keys() == theirs["weights"].keys()
    for name, weight in theirs["weights"].items():
        np.testing.assert_allclose(ours["weights"][name], weight, atol=most, rtol=0, err_msg=name)


def _arrays(tensors: Mapping[str, torch.Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in tensors.items()}


def _tensors(arrays: Mapping[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
