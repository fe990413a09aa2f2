"""Base of the preparation steps: each gives every document back, changed or not, or a reason to remove it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from workbench.choices.choice import Choice, Problem


class Document(NamedTuple):
    """One document of a corpus.

    Attributes:
        number: its place in the corpus as it was read, from 0; steps never renumber.
        sources: names of what it comes from, the widest first (package, module); empty where there are none.
        text: as the steps before left it.
    """

    number: int
    sources: tuple[str, ...]
    text: str


class Verdict(NamedTuple):
    """Tell what a step does with one document.

    Attributes:
        document: as it came in.
        text: as it goes on; of a removed document it counts for nothing.
        removed: reason for which it is removed, one of a few of the step; empty where it goes on.
        detail: numbers or the other document behind the reason.
        changes: what was changed in the text, and how often.
        facts: numbers that the report adds up over all documents, removed ones included.
    """

    document: Document
    text: str
    removed: str = ""
    detail: str = ""
    changes: Mapping[str, int] = {}
    facts: Mapping[str, int] = {}


def kept(document: Document) -> Verdict:
    """Return the verdict of a document that goes on as it is."""
    return Verdict(document, document.text)


def removed(document: Document, reason: str, detail: str = "") -> Verdict:
    """Return the verdict of a document that is removed."""
    return Verdict(document, "", reason, detail)


class Step(Choice):
    """Base of the preparation steps, which ``data.steps`` lists in the order in which they are applied.

    Documents go through all of them before the split, so that held-out text is prepared as training text is.
    """

    axis: ClassVar[str] = "step"
    provides: ClassVar[tuple[str, ...]] = ("judge",)
    version: ClassVar[int] = 1
    """Part of the cache key: raise it whenever the same step would give other documents."""

    def judge(self, documents: Iterable[Document]) -> Iterator[Verdict]:
        """Yield the verdict of each document, in their order.

        Args:
            documents: may be gone through more than once; are never held in memory all at once.
        """
        raise NotImplementedError

    def key(self) -> dict[str, Any]:
        """Return what decides its verdicts, JSON-able, for the key of the cache; files that it reads belong here."""
        return {**self.model_dump(mode="json"), "version": self.version}

    def problems_here(self) -> Iterator[Problem]:
        """Yield what is missing on this machine: a package, a file; by knob."""
        return iter(())
