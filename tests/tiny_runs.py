"""A recipe that the real trainer finishes within seconds on one core, and a patient look at conditions."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from workbench.client.run import Run
from workbench.recipes.recipe import Recipe


def tiny_recipe(corpus: Path, steps: int = 30, name: str = "tiny") -> Recipe:
    """Two thin layers, eager, one thread, fp32."""
    return Recipe(
        name=name,
        data={
            "kind": "files",
            "paths": [str(corpus)],
            "tokenizer": {"kind": "trained", "vocabulary_size": 256},
            "sequence_length": 32,
            "batch_size": 8,
        },
        architecture={"kind": "pre_ln", "layers": 2, "width": 32, "heads": 2},
        execution={
            "kind": "native",
            "compile": False,
            "precision": "fp32",
            "attention": "sdpa",
            "device": "cpu",
            "threads": 1,
        },
        budget={"amount": steps, "unit": "steps", "evaluations": 2, "evaluation_tokens": 1024},
    )


def yield_to_others(run: Run) -> None:
    """Let a run that is only looked at train in the time that others leave: it would keep a core from them."""
    trainer = psutil.Process(run.state.pid)
    trainer.nice(10)
    # Linux shares cores among sessions first, and a run has one of its own: within it there is nobody to be nice to.
    with contextlib.suppress(OSError):
        Path(f"/proc/{trainer.pid}/autogroup").write_text("10")


def wait_until(true: Callable[[], bool], seconds: float = 60.0, what: str = "it") -> None:
    """Wait for a condition; fails, naming it, when it does not come true in time."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds:g} s"
        time.sleep(0.05)
