"""What tests of whole runs share: a corpus that a tiny model learns within seconds, folders of their own."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path

import pytest

CYCLE = (
    "amber", "birch", "cedar", "delta", "ember", "frost", "grove", "heron", "ivory", "joker",
    "karst", "lemon", "mango", "north", "ocean", "pearl", "quartz", "river", "stone", "tiger",
)  # fmt: skip


def pytest_configure() -> None:
    """Ctrl-C reaches the processes of tests, also where pytest itself was started with it ignored (``nohup ... &``)."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first: the last ones to end should be short, or one core waits for the other."""
    items.sort(key=lambda item: "slow" not in item.keywords or "browser" in item.keywords)


@pytest.fixture(scope="session")
def learnable_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 documents that walk through 20 words in a fixed order from a random start.

    Word frequencies alone are worth ln 20 = 3.0 nats; one neighbour tells the word, so even two thin layers get far
    below that in a few hundred steps.
    """
    path = tmp_path_factory.mktemp("text") / "cycle.jsonl"
    rng = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(400):
            start, length = rng.randrange(len(CYCLE)), rng.randrange(40, 90)
            words = [CYCLE[(start + i) % len(CYCLE)] for i in range(length)]
            file.write(json.dumps({"text": " ".join(words)}) + "\n")
    return path


@pytest.fixture(scope="session")
def learnable(learnable_text: Path) -> list[str]:
    """PATH=VALUE changes that make any preset a two-layer model on :func:`learnable_text`, eager, on one thread."""
    data = {
        "kind": "files", "paths": [str(learnable_text)], "sequence_length": 32, "batch_size": 16,
        "tokenizer": {"kind": "trained", "vocabulary_size": 128},
    }  # fmt: skip
    return [
        f"data={json.dumps(data)}",
        'architecture={"layers": 2, "width": 64, "heads": 2}',
        'execution={"compile": false, "threads": 1, "precision": "fp32", "attention": "plain", "device": "cpu"}',
        'budget={"evaluations": 2, "evaluation_tokens": 2048}',
    ]


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache folder for all runs of a session: the corpus is prepared once."""
    return tmp_path_factory.mktemp("cache")
