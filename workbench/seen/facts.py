"""Facts about the text of a recipe or run: lengths, vocabulary, sources, and what was removed and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from workbench.choices.data.preparation import Preparation
from workbench.choices.data.tokenizers.report import tokenizer_report
from workbench.seen.rows import Reader

# Shape legend: D documents.

MOST_POINTS = 60
"""Steps at which the shares of a mixture are told."""


def facts(reader: Reader) -> dict[str, Any]:
    """Return facts as JSON has them.

    Returns:
        ``train`` and ``heldout`` (documents and tokens); ``lengths``: documents by length, ``[from, to, number]``, in
        tokens; ``tokenizer``: its report (:func:`~workbench.choices.data.tokenizers.report.tokenizer_report`);
        ``sources``: of a mixture, ``name``, ``documents``, ``tokens``, and what was ``read`` of each so far, in tokens;
        ``shares``: ``[step, [share of each source]]``, of the tokens read since the step before, over the whole run;
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
        "tokenizer": tokenizer_report(prepared),
        "sources": _sources(reader),
        "shares": shares(reader) if prepared.parts else [],
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


def shares(reader: Reader, most: int = MOST_POINTS) -> list[tuple[int, list[float]]]:
    """Return the share of each source in what is read, ``(step, shares)``: of the steps since the point before.

    Args:
        reader: of a mixture. most: points, spread evenly over the steps that were taken and those to come.
    """
    steps = reader.course.steps()
    places = np.unique(np.linspace(0, len(steps.step_S) - 1, most + 1).astype(np.int64))
    before, found = None, []
    for place in places[: len(steps.step_S)].tolist():
        read = reader.order.read(reader.order.first_sample(int(steps.tokens_S[place])))
        tokens = np.array([read[f"data.tokens/{name}"] for name in reader.prepared.parts])
        if before is not None and (new := tokens - before).sum() > 0:
            found.append((int(steps.step_S[place]), np.round(new / new.sum(), 4).tolist()))
        before = tokens
    return found
