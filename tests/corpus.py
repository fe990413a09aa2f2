"""The one text that tests train on."""

from __future__ import annotations

import json
import random
from pathlib import Path

CYCLE = (
    "amber", "birch", "cedar", "delta", "ember", "frost", "grove", "heron", "ivory", "joker",
    "karst", "lemon", "mango", "north", "ocean", "pearl", "quartz", "river", "stone", "tiger",
)  # fmt: skip


def write_corpus(folder: Path, documents: int = 400) -> Path:
    """``cycle.jsonl`` in a folder: documents that walk through 20 words in a fixed order from a random start.

    Word frequencies alone are worth ln 20 = 3.0 nats; one neighbour tells the word, so even two thin layers get far
    below that in a few hundred steps.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path, dice = folder / "cycle.jsonl", random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(documents):
            start, length = dice.randrange(len(CYCLE)), dice.randrange(40, 90)
            words = [CYCLE[(start + place) % len(CYCLE)] for place in range(length)]
            file.write(json.dumps({"text": " ".join(words)}) + "\n")
    return path
