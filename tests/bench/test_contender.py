"""The protocol between a race and its contenders, with real child processes."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from workbench import presets
from workbench.bench.contender import Contender, Stage

CHILD = """
import json, sys
from workbench.bench.contender import Stage
setting = json.loads(sys.argv[1])
stage = Stage()
print("a library that prints")


def answer(message):
    steps = message["steps"]
    if steps == 13:
        sys.exit("thirteen is too many")
    return {"seconds": 0.5 * steps, "tokens": 100 * steps}


stage.serve({"greeting": setting["greeting"]}, answer)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "quick_contender.py").write_text(CHILD, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "quick_contender"


@pytest.mark.process
def test_rounds_are_answered_and_the_child_ends_with_us(module: str) -> None:
    with Contender(module, {"name": "quick", "greeting": "hello"}) as contender:
        assert contender.ready == {"greeting": "hello"}, "what a library prints is kept out of the protocol"
        assert contender.ask({"steps": 3}) == {"seconds": 1.5, "tokens": 300}
        assert contender.ask({"steps": 1, "more": [1]}) == {"seconds": 0.5, "tokens": 100}
    assert contender._child.returncode == 0


@pytest.mark.process
def test_a_child_that_dies_is_quoted(module: str) -> None:
    with (
        pytest.raises(RuntimeError, match=r"(?s)contender 'quick' ended with exit code 1.*library.*thirteen"),
        Contender(module, {"name": "quick", "greeting": "hello"}) as contender,
    ):
        contender.ask({"steps": 13})


@pytest.mark.process
def test_an_error_beside_it_ends_the_child_at_once(module: str) -> None:
    with pytest.raises(ZeroDivisionError), Contender(module, {"name": "quick", "greeting": "hello"}) as contender:
        _ = 1 / 0
    assert contender._child.returncode == -9


def test_the_childs_side(monkeypatch: pytest.MonkeyPatch) -> None:
    out, errors = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"steps": 4}\n'))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", errors)
    stage = Stage()
    print("noise")
    stage.serve({"steps": 0}, lambda message: {"seconds": message["steps"] / 4})
    assert [json.loads(line) for line in out.getvalue().splitlines()] == [{"ready": {"steps": 0}}, {"seconds": 1.0}]
    assert errors.getvalue() == "noise\n"


BEGINNING = """
import torch
from workbench.bench.contender import begin

stage, setting, recipe = begin()
stage.say({"name": setting["name"], "seed": recipe.seed, "threads": torch.get_num_threads()})
"""


@pytest.mark.process
def test_a_child_takes_its_recipe_and_its_threads() -> None:
    recipe = presets.fast().with_(seed=7, execution={"threads": 1})
    setting = json.dumps({"name": "me", "recipe": recipe.to_dict()})
    done = subprocess.run([sys.executable, "-c", BEGINNING, setting], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"name": "me", "seed": 7, "threads": 1}
