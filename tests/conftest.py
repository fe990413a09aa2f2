"""What tests of whole runs share: a corpus that a tiny model learns within seconds, folders of their own."""

from __future__ import annotations

import errno
import json
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
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


class SmallDisk:
    """A file system of its own that can be filled to the last byte and freed again."""

    def __init__(self, path: Path) -> None:
        self.path, self._filler = path, path / "filler"

    def fill(self) -> None:
        """Leave not a byte."""
        with self._filler.open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def free(self) -> None:
        """Give back what :meth:`fill` has taken."""
        self._filler.unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], SmallDisk]]:
    """``small_disk("4m")`` -> a tmpfs of that size, gone with the test."""
    mounted: list[Path] = []

    def mount(size: str) -> SmallDisk:
        path = tmp_path / f"disk-{len(mounted)}"
        path.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
        try:
            done = subprocess.run(command, capture_output=True)
        except FileNotFoundError:
            pytest.skip("no `mount` here")
        if done.returncode != 0:
            pytest.skip("a small file system needs root")
        mounted.append(path)
        return SmallDisk(path)

    yield mount
    for path in mounted:
        # Lazily: a process that a failed test left behind may still be in it.
        subprocess.run(["umount", "-l", str(path)], check=True)
