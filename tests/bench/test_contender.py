"""The protocol between a race and its contenders, with real child processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench import presets
from workbench.bench.contender import Contender

CHILD = """
import sys
import torch
from workbench.bench.contender import begin
stage, setting, recipe = begin()
print("a library that prints")


def answer(message):
    steps = message["steps"]
    if steps == 13:
        sys.exit("thirteen is too many")
    return {"seconds": 0.5 * steps, "tokens": 100 * steps}


stage.serve({"name": setting["name"], "seed": recipe.seed, "threads": torch.get_num_threads()}, answer)
"""


SETTING = {"name": "quick", "recipe": presets.fast().with_(seed=7, execution={"threads": 1}).to_dict()}


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "quick_contender.py").write_text(CHILD, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "quick_contender"


@pytest.mark.process
def test_rounds_are_answered_and_the_child_ends_with_us(module: str) -> None:
    with Contender(module, SETTING) as contender:
        # What a library prints is kept out of the protocol.
        assert contender.ready == {"name": "quick", "seed": 7, "threads": 1}, (
            "what a library prints is kept out of the protocol"
        )
        assert contender.ask({"steps": 3}) == {"seconds": 1.5, "tokens": 300}
        assert contender.ask({"steps": 1, "more": [1]}) == {"seconds": 0.5, "tokens": 100}
    assert contender._child.returncode == 0


@pytest.mark.process
def test_a_child_that_dies_is_quoted(module: str) -> None:
    with (
        pytest.raises(RuntimeError, match=r"(?s)contender 'quick' ended with exit code 1.*library.*thirteen"),
        Contender(module, SETTING) as contender,
    ):
        contender.ask({"steps": 13})


@pytest.mark.process
def test_an_error_beside_it_ends_the_child_at_once(module: str) -> None:
    with pytest.raises(ZeroDivisionError), Contender(module, SETTING) as contender:
        _ = 1 / 0
    assert contender._child.returncode == -9
