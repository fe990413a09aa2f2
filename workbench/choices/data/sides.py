"""The two sides of text: what is trained on and what is held out, corpus by corpus."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate, combinations
from pathlib import Path
from typing import Any

import numpy as np

from workbench.base.text import many
from workbench.choices.data.after_steps import AfterSteps
from workbench.choices.data.data import Data, Say, Sourced
from workbench.choices.data.split import choose_split, document_hash

ORIGINS_FILE = "origins.json"
HELD_FILE = "heldout.hashes.npy"
"""Hashes of all documents that the parts of a mixture hold out, uint64, for parts that are read while a run trains."""


class Texts:
    """The documents of all corpora of data: each is split by itself, and what one holds out none is trained on.

    Attributes:
        documents: all of them, after the preparation steps. sides: of each corpus, by name.
    """

    def __init__(self, data: Data, say: Say) -> None:
        corpora = data.corpora()
        held = {name: each.heldout_documents() for name, each in corpora.items()}
        own = {name: None if texts is None else {document_hash(text) for text in texts} for name, texts in held.items()}
        self.documents = AfterSteps(data, {text for texts in own.values() for text in texts or ()}, say)
        self.sides = {}
        for name, each in corpora.items():
            documents: Iterable[Sourced] = self.documents
            if name:
                # Without steps a part's own, lest the text of all parts is read for each.
                documents = _OfPart(self.documents, name) if data.steps else AfterSteps(each, own[name] or (), say)
            self.sides[name] = _Sides(each, own[name], documents, data.heldout_fraction)
        self._read = {id(side.documents): side.documents for side in self.sides.values()}
        # Of one corpus the split itself keeps them apart.
        self._foreign = {document_hash(text) for text in self.all(heldout=True)} if len(corpora) > 1 else set()

    def of(self, name: str, *, heldout: bool) -> Iterator[str]:
        """Yield every document of one side of a corpus with text in it."""
        return (text for _, text in self.sourced(name, heldout=heldout))

    def sourced(self, name: str, *, heldout: bool) -> Iterator[Sourced]:
        """Return the same documents, each with what it comes from."""
        found = self.sides[name].sourced(heldout=heldout)
        if heldout or len(self.sides) == 1:
            return found
        return (each for each in found if document_hash(each[1]) not in self._foreign)

    def all(self, *, heldout: bool) -> Iterator[str]:
        """Yield every document of one side, one corpus after the other."""
        return (text for name in self.sides for text in self.of(name, heldout=heldout))

    def write(self, folder: Path) -> None:
        """Write the hashes of held-out documents where there are several corpora."""
        if len(self.sides) > 1:
            np.save(folder / HELD_FILE, np.array(sorted(self._foreign), np.uint64))

    @property
    def heldout_in_training(self) -> int:
        """Return how many documents of the training text are held-out ones, and were left out, once all were read."""
        return sum(getattr(documents, "own_left_out", 0) for documents in self._read.values())

    def described(self, ends: list[list[int]]) -> dict[str, Any]:
        """Return the split for a manifest.

        Args:
            ends: documents in both splits after each corpus.
        """
        found = [side.described() for side in self.sides.values()]
        return {"split": found[0]} if "" in self.sides else {"split": {"parts": found}, "parts": ends}


TOLD_SHARE = 0.05
"""Share of documents that stand in a corpus before: fewer are usual, as many may be a dataset that was copied."""


class Shared:
    """Counts the documents that stand in two corpora, or twice in one: a dataset that appears twice."""

    def __init__(self) -> None:
        self._hashes: dict[str, array[int]] = {}

    def watch(self, name: str, texts: Iterator[str]) -> Iterator[str]:
        """Yield the training documents of a corpus as they are; their hashes are kept on the way, 8 bytes each."""
        kept = self._hashes[name] = array("Q")
        for text in texts:
            kept.append(document_hash(text))
            yield text

    def told(self) -> Iterator[str]:
        """Yield a line for every corpus with many repeated documents, and for every two that share documents."""
        for name, hashes in self._hashes.items():
            repeated = len(hashes) - len(np.unique(np.array(hashes, np.uint64)))
            if repeated > TOLD_SHARE * len(hashes):
                where = f"{many(len(hashes), 'document')}{f' of part {name!r}' if name else ''}"
                yield (f"{repeated:,} of {where} stand in the text before: each is read as often as it stands there; "
                       'data.steps=["exact_duplicates"] keeps one of each')  # fmt: skip
        for (first, some), (second, others) in combinations(self._hashes.items(), 2):
            count = int(np.isin(np.array(others, np.uint64), np.array(some, np.uint64)).sum())
            if count:
                yield (f"{count:,} of {many(len(others), 'document')} of part '{second}' also stand in part '{first}': "
                       "they are read by the weights of both")  # fmt: skip


class Origins:
    """Sources of training documents, where a corpus names them, kept beside its tokens for people to read."""

    def __init__(self) -> None:
        self._runs: list[tuple[str, int]] = []
        """Documents in a row that come from the same."""

    def watch(self, documents: Iterable[Sourced]) -> Iterator[str]:
        """Yield the texts of documents, in order."""
        for sources, text in documents:
            name = "/".join(sources)
            if self._runs and self._runs[-1][0] == name:
                self._runs[-1] = name, self._runs[-1][1] + 1
            else:
                self._runs.append((name, 1))
            yield text

    def write(self, folder: Path, documents: int) -> None:
        """Write ``origins.json`` unless nothing is named, or not every document has become tokens."""
        if any(name for name, _ in self._runs) and sum(count for _, count in self._runs) == documents:
            (folder / ORIGINS_FILE).write_text(json.dumps(self._runs), encoding="utf-8")


def origins(folder: Path) -> list[tuple[int, str]]:
    """Return ``(first document, what it and those behind it come from)`` of prepared training text, rising."""
    try:
        runs = json.loads((folder / ORIGINS_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    begins = accumulate((count for _, count in runs), initial=0)
    return [(begin, name) for begin, (name, _) in zip(begins, runs, strict=False)]


class _OfPart:
    """The documents of a part of a mixture after the steps of the mixture."""

    def __init__(self, documents: Iterable[Sourced], name: str) -> None:
        self._documents, self._name = documents, name

    def __iter__(self) -> Iterator[Sourced]:
        return ((names[1:], text) for names, text in self._documents if names[0] == self._name)


class _Sides:
    """The documents of both sides of a corpus, as often as they are asked for, after the preparation steps.

    Attributes:
        documents: as given.
        split: the rule in force; None where the corpus brings a held-out set of its own, which no step changes.
    """

    def __init__(self, data: Data, own: set[int] | None, documents: Iterable[Sourced], fraction: float) -> None:
        self._data, self._own, self.documents = data, own, documents
        self.split = choose_split(documents, fraction, by_source=data.split_by_source) if own is None else None

    def described(self) -> dict[str, Any]:
        """Return the rule for a manifest."""
        return self.split.described() if self.split else {"grain": "heldout_paths", "sources": []}

    def sourced(self, *, heldout: bool) -> Iterator[Sourced]:
        """Yield every document of one side with text in it; a training document that is also held out is left out."""
        found: Iterable[Sourced]
        if self.split is not None:
            split = self.split
            sided = ((sources, side) for sources, text in self.documents for side in split.sides(sources, text))
            found = ((sources, side.text) for sources, side in sided if side.heldout == heldout)
        elif heldout:
            found = (((), text) for text in self._data.heldout_documents() or ())
        else:
            # Once more: a step may have made of a document one that is held out.
            own = self._own or set()
            found = (each for each in self.documents if document_hash(each[1]) not in own)
        return (each for each in found if each[1] and not each[1].isspace())
