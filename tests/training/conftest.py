"""A tiny recipe, and runs of it in real processes."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from workbench.base.loading import COMPILER
from workbench.choices.data.prepare import prepare
from workbench.choices.data.tokens import PreparedData
from workbench.recipes.recipe import Recipe
from workbench.store.folder import RunFolder
from workbench.store.state import read_state
from workbench.telemetry.streams import Telemetry, read_telemetry
from workbench.training.assemble import Assembled, assemble
from workbench.training.loop import Training


@pytest.fixture(scope="session")
def tiny(corpus: Path) -> Recipe:
    """3 layers x 32, 16 rows of 32 tokens, eager, fp32: a step takes milliseconds."""
    return Recipe(
        name="tiny",
        data={
            "kind": "files",
            "paths": (str(corpus),),
            "tokenizer": {"kind": "trained", "vocabulary_size": 256},
            "sequence_length": 32,
            "batch_size": 16,
        },
        architecture={"kind": "pre_ln", "layers": 3, "width": 32, "heads": 2, "dropout": 0.1},
        optimizer={"kind": "adamw", "lr": 3e-3},
        execution={
            "kind": "native", "device": "cpu", "precision": "fp32", "compile": False, "attention": "plain",
            "threads": 1, "layers_every": 5,
        },
        budget={"amount": 20, "unit": "steps", "evaluations": 2, "evaluation_tokens": 1024},
    )  # fmt: skip


@pytest.fixture
def prepared(tiny: Recipe) -> PreparedData:
    return prepare(tiny.data, say=lambda line: None)


@pytest.fixture
def build(prepared: PreparedData) -> Callable[..., Training]:
    """``build(recipe, **arguments)`` -> a Training at step 0, without a run folder."""
    made: list[Training] = []

    def _build(recipe: Recipe, **arguments: Any) -> Training:
        parts: Assembled = assemble(recipe, prepared)
        made.append(Training(recipe, parts, **arguments))
        return made[-1]

    yield _build
    for training in made:
        training.close()


_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(["workbench.training.worker", "workbench.training.session", COMPILER])


class Forked:
    """A worker that is forked from a process which has loaded torch, and what tests ask of a process."""

    def __init__(
        self, arguments: list[str], log: Path, before: Callable[[], None] | None, there: Mapping[str, str] = {}
    ) -> None:
        environment = os.environ | there
        self._process = _forks.Process(target=_work, args=(arguments, str(log), environment, before))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid
        self.kill = self._process.kill

    def send_signal(self, number: int) -> None:
        """To the process itself."""
        os.kill(self.pid, number)

    def poll(self) -> int | None:
        """Its exit code, negative after a signal; None as long as it lives."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended."""
        self._process.join(timeout)
        code = self.poll()
        assert code is not None, f"process {self.pid} has not ended after {timeout} s"
        return code


def _work(arguments: list[str], log: str, environment: dict[str, str], before: Callable[[], None] | None) -> None:
    from workbench.training.worker import main

    began = time.monotonic()
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for number in (1, 2):
        os.dup2(descriptor, number)
    os.environ.clear()
    os.environ.update(environment)
    if before is not None:
        before()
    sys.exit(main(arguments, began))


class LiveRun:
    """A run folder and the worker process that trains it."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | Forked | None = None

    def fork(self, *options: str, before: Callable[[], None] | None = None) -> LiveRun:
        """Have a worker train that need not load torch: for what happens afterwards.

        Args:
            before: is called in its process first; a function of a module.
        """
        self.process = Forked([str(self.folder.path), *options], self.folder.log, before)
        return self

    def start(self, *options: str) -> LiveRun:
        """Have a new process train, from its first import."""
        command = [sys.executable, "-m", "workbench.training.worker", str(self.folder.path), *options]
        log = self.folder.log.open("ab")
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        log.close()
        return self

    def wait(self, timeout: float = 120) -> int:
        assert self.process is not None
        return self.process.wait(timeout)

    def until(self, what: Callable[[LiveRun], Any], timeout: float = 90) -> Any:
        """Poll until ``what`` is true of the run."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if found := what(self):
                return found
            assert self.process is None or self.process.poll() is None or what(self), self.log
            time.sleep(0.02)
        raise AssertionError(f"never came true; state {self.state}, log:\n{self.log}")

    @property
    def log(self) -> str:
        return self.folder.log.read_text()

    @property
    def state(self) -> Any:
        return read_state(self.folder)

    @property
    def telemetry(self) -> Telemetry:
        return read_telemetry(self.folder.telemetry)

    @property
    def steps_said(self) -> int:
        said = self.telemetry.scalars
        return said[-1]["step"] if said else 0


@pytest.fixture
def live(tmp_path: Path) -> Callable[..., LiveRun]:
    """``live(recipe, root)`` -> a LiveRun that is not started yet; every process is ended with the test."""
    runs: list[LiveRun] = []

    def _live(recipe: Recipe, root: Path = tmp_path) -> LiveRun:
        folder = RunFolder(root / f"run-{len(runs)}")
        folder.path.mkdir()
        recipe.save(folder.recipe)
        runs.append(LiveRun(folder))
        return runs[-1]

    yield _live
    for run in runs:
        if run.process is not None and run.process.poll() is None:
            run.process.kill()
            run.process.wait()
