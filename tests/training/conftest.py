"""A tiny recipe, and runs of it in real processes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workbench.choices.data.prepare import prepare
from workbench.choices.data.tokens import PreparedData
from workbench.recipe import Recipe
from workbench.runs.folder import RunFolder
from workbench.runs.state import read_state
from workbench.telemetry import Telemetry, read_telemetry
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


class LiveRun:
    """A run folder and the worker process that trains it."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> LiveRun:
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
