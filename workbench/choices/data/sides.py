"""The two sides of text: what is trained on and what is held out, corpus by corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from workbench.choices.data.after_steps import AfterSteps
from workbench.choices.data.data import Data, Say, Sourced
from workbench.choices.data.split import choose_split, document_hash


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
        # Of one corpus the split itself keeps them apart.
        self._foreign = {document_hash(text) for text in self.all(heldout=True)} if len(corpora) > 1 else set()

    def of(self, name: str, *, heldout: bool) -> Iterator[str]:
        """Every document of one side of a corpus with text in it."""
        texts = self.sides[name].texts(heldout=heldout)
        if heldout or len(self.sides) == 1:
            return texts
        return (text for text in texts if document_hash(text) not in self._foreign)

    def all(self, *, heldout: bool) -> Iterator[str]:
        """Every document of one side, one corpus after the other."""
        return (text for name in self.sides for text in self.of(name, heldout=heldout))

    def described(self, ends: list[list[int]]) -> dict[str, Any]:
        """Return the split for a manifest.

        Args:
            ends: documents in both splits after each corpus.
        """
        found = [side.described() for side in self.sides.values()]
        return {"split": found[0]} if "" in self.sides else {"split": {"parts": found}, "parts": ends}


class _OfPart:
    """The documents of a part of a mixture after the steps of the mixture."""

    def __init__(self, documents: Iterable[Sourced], name: str) -> None:
        self._documents, self._name = documents, name

    def __iter__(self) -> Iterator[Sourced]:
        return ((names[1:], text) for names, text in self._documents if names[0] == self._name)


class _Sides:
    """The documents of both sides of a corpus, as often as they are asked for, after the preparation steps.

    Attributes:
        split: the rule in force; None where the corpus brings a held-out set of its own, which no step changes.
    """

    def __init__(self, data: Data, own: set[int] | None, documents: Iterable[Sourced], fraction: float) -> None:
        self._data, self._own, self._documents = data, own, documents
        self.split = choose_split(documents, fraction) if own is None else None

    def described(self) -> dict[str, Any]:
        """Return the rule for a manifest."""
        return self.split.described() if self.split else {"grain": "heldout_paths", "sources": []}

    def texts(self, *, heldout: bool) -> Iterator[str]:
        """Every document of one side with text in it; a training document that is also held out is left out."""
        texts: Iterable[str]
        if self.split is not None:
            split = self.split
            sided = (side for sources, text in self._documents for side in split.sides(sources, text))
            texts = (side.text for side in sided if side.heldout == heldout)
        elif heldout:
            texts = self._data.heldout_documents() or ()
        else:
            # Once more: a step may have made of a document one that is held out.
            own = self._own or set()
            texts = (text for _, text in self._documents if document_hash(text) not in own)
        return (text for text in texts if text and not text.isspace())
