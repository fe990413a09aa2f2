"""A masked and a causal run of two thin layers, and a few items of every benchmark."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from tests.tiny_runs import tiny_recipe
from workbench.client.launch import launch
from workbench.client.run import Run

PAIRS = [
    ("the cat sleeps here", "the cat sleep here", "agreement"),
    ("the dogs sleep here", "the dogs sleeps here", "agreement"),
    ("no man has ever left", "some man has ever left", "npi"),
    ("she saw herself", "she saw herself", "npi"),
    ("a book that he read was long and heavy", "a book that he read were long and heavy", "agreement"),
]


@pytest.fixture(scope="session", params=["masked", "causal"])
def run(request: pytest.FixtureRequest, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    recipe = tiny_recipe(corpus, steps=6, name=request.param).with_(objective=request.param)
    run = launch(recipe, on="inline", runs_dir=tmp_path_factory.mktemp("runs"))
    run.wait()
    assert run.status == "finished"
    return run


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the benchmarks, in their shapes."""
    folder = tmp_path_factory.mktemp("eval")
    blimp = [
        {"UID": f"{group}_{number % 2}", "linguistics_term": group, "sentence_good": good, "sentence_bad": bad}
        for number, (good, bad, group) in enumerate(PAIRS)
    ]
    write(folder / "blimp.jsonl.xz", blimp)
    write(folder / "more" / "lambada_openai_test.jsonl", [
        {"context": "he came to the old house and opened the old", "target": "house"},
        {"text": "she looked at him and said his name"},
    ])  # fmt: skip
    write(folder / "copa_validation.jsonl", [
        {"premise": "The man fell.", "choice1": "He was pushed.", "choice2": "He ran.", "question": "cause",
         "label": 0},
        {"premise": "It rained.", "choice1": "The sun was hot.", "choice2": "The road was wet.", "question": "effect",
         "label": 1},
    ])  # fmt: skip
    write(folder / "arc_easy.jsonl", [
        {"split": "train", "question": "left out", "choices": ["a", "b"], "label": 0},
        {"split": "test", "question": "Which is a cat?", "choices": ["a stone", "a cat", "a tree"], "label": 1},
    ])  # fmt: skip
    return folder


def write(path: Path, items: list[dict[str, object]]) -> None:
    """Write items as JSON lines, compressed if the name says so."""
    path.parent.mkdir(exist_ok=True)
    with (lzma.open if path.suffix == ".xz" else open)(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(item) + "\n" for item in items)
