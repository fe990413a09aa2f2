"""Facts about the text of a recipe or run: lengths, vocabulary, sources, and what was removed and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from workbench.choices.data.preparation import Preparation
from workbench.choices.data.tokens import Vocabulary
from workbench.seen.rows import Reader

# Shape legend: D documents, V ids of the vocabulary.

MOST_TOKENS = 20
"""Tokens of the vocabulary that are named, of each kind."""


def facts(reader: Reader) -> dict[str, Any]:
    """Return facts as JSON has them.

    Returns:
        ``train`` and ``heldout`` (documents and tokens); ``lengths``: documents by length, ``[from, to, number]``, in
        tokens; ``vocabulary``: ``size``, ``unused`` with some of them, ``frequent`` as ``[token, share]``;
        ``sources``: of a mixture, ``name``, ``documents``, ``tokens``, and what was ``read`` of each so far, in tokens;
        ``preparation``: reports of its steps (``preparation.json``).
    """
    prepared = reader.prepared
    offsets_D1 = prepared.train.offsets_D1
    splits = {name: getattr(prepared, name) for name in ("train", "heldout")}
    preparation = Preparation(Path(prepared.tokenizer_file).parent).to_dict()
    return {
        "name": reader.name,
        **{name: {"documents": store.documents, "tokens": store.tokens} for name, store in splits.items()},
        "lengths": lengths(np.diff(offsets_D1)),
        "vocabulary": _vocabulary(reader, prepared.vocabulary, prepared.counts_V),
        "sources": _sources(reader),
        "preparation": preparation["steps"],
        "steps": [reader.course.begun, reader.course.done, reader.course.last],
    }


def lengths(length_D: np.ndarray) -> list[list[int]]:
    """Return how many documents have which length in tokens: ``[from, to, number]``, from one power of two to the next.

    Example:
        >>> lengths(np.array([3, 4, 5, 9]))
        [[2, 3, 1], [4, 7, 2], [8, 15, 1]]
    """
    power_D = np.log2(length_D).astype(np.int64)
    counts = np.bincount(power_D)
    least = int(power_D.min())
    return [[1 << power, (2 << power) - 1, int(counts[power])] for power in range(least, len(counts))]


def _vocabulary(reader: Reader, vocabulary: Vocabulary, counts_V: np.ndarray) -> dict[str, Any]:
    ordinary_V = np.arange(len(counts_V)) < vocabulary.used
    ordinary_V[[*vocabulary.special, vocabulary.unk]] = False
    unused = np.flatnonzero(ordinary_V & (counts_V == 0))
    frequent = [token for token in np.argsort(-counts_V, kind="stable").tolist() if ordinary_V[token]][:MOST_TOKENS]
    whole = max(1, int(counts_V[ordinary_V].sum()))
    return {
        "size": vocabulary.used,
        "unused": len(unused),
        "unused_tokens": [reader.text(token) for token in unused[:MOST_TOKENS].tolist()],
        "frequent": [[reader.text(token), round(int(counts_V[token]) / whole, 6)] for token in frequent],
    }


def _sources(reader: Reader) -> list[dict[str, Any]]:
    offsets_D1 = reader.prepared.train.offsets_D1
    read = reader.order.read(reader.order.first_sample(reader.course.tokens))
    return [
        {
            "name": name,
            "documents": len(part.train),
            "tokens": int(offsets_D1[part.train.stop] - offsets_D1[part.train.start]),
            "read": int(read.get(f"data.tokens/{name}", 0)),
        }
        for name, part in reader.prepared.parts.items()
    ]
