"""Documents after the preparation steps: verdicts are made once and kept, the text streams through them.

Every step has a cache entry of its own in the area ``steps``, keyed by the corpus and by all steps up to it: recipes
that share their first steps share their entries, and preparation that was interrupted goes on with the step it was in.
An entry holds no copy of the text but ``removed.jsonl``, ``changed.jsonl`` (``[number, text]``) and the report.

**What a cache entry of tokens holds beside the tokens** where a recipe has steps:

``preparation.json``::

    {"format": 1, "documents_in", "documents_out", "characters_in", "characters_out", "steps": [REPORT, ...]}

with a REPORT per step, in order::

    {"step": 0, "kind": "exact_duplicates", "settings": {...}, "seconds": 1.5,
     "documents_in", "documents_out", "removed", "changed",                      # documents
     "characters_in", "characters_out", "removed_characters",
     "removed_share", "removed_character_share", "changed_share",                # shares of what came in
     "reasons": {"repeated": 12}, "changes": {"email": 3},                       # documents by reason, parts by kind
     "facts": {"characters in Latin": 5120},                                     # numbers that the step adds up
     "kept_examples": [EXAMPLE], "removed_examples": [EXAMPLE], "changed_examples": [EXAMPLE]}   # up to ten each

and an EXAMPLE ``{"number", "sources", "characters", "text"}``; of a removed one with ``reason`` and ``detail``, of a
changed one with ``before`` (``text`` is the text after). Texts are cut to 400 characters; of a changed one both begin
near the first difference. ``number`` is a document's place in the corpus as it was read, from 0.

``removed.jsonl``, a line per removed document, by step, then by number::

    {"step", "kind", "number", "sources", "reason", "detail", "characters", "text"}

with the first 120 characters of its text.
"""

from __future__ import annotations

import json
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from workbench.base.errors import DataError
from workbench.base.files import write_bytes
from workbench.base.text import many
from workbench.choices.data.cache import cache_entry, key_of
from workbench.choices.data.data import Data, Say, Sourced
from workbench.choices.data.split import document_hash
from workbench.choices.data.steps.step import Document, Verdict

FORMAT = 1
PREPARATION_FILE, REMOVED_FILE = "preparation.json", "removed.jsonl"
_CHANGED_FILE = "changed.jsonl"
EXAMPLES = 10
EXAMPLE_CHARACTERS, LISTED_CHARACTERS = 400, 120
SAY_SECONDS = 5.0


class AfterSteps:
    """The documents of a corpus after its steps, as often as they are asked for.

    Args:
        data: the corpus, collected. own: hashes of the held-out documents that it brings; they are no part of this,
            and no step sees them. say: told of each step; the steps are applied at once.

    Attributes:
        reports: one per step, see above. own_left_out: held-out documents that the last reading found in the text.

    Raises:
        DataError: the corpus cannot be read, a step lacks what it needs, the cache cannot be written.
    """

    def __init__(self, data: Data, own: Iterable[int], say: Say) -> None:
        self._data, self._own = data, frozenset(own)
        self.own_left_out = 0
        self._folders: list[Path] = []
        self.reports: list[dict[str, Any]] = []
        sources = {**data.model_dump(include={"kind"}), **data.sources()} if data.steps else {}
        for number, step in enumerate(data.steps):
            if lacking := "; ".join(map(str, step.problems_here())):
                raise DataError(f"data.steps: {step.kind} (number {number + 1}) cannot be applied: {lacking}")
            key = key_of(
                {"format": FORMAT, "sources": sources, "steps": [each.key() for each in data.steps[: number + 1]]}
            )
            folder, manifest = cache_entry("steps", key, _Building(self, number, step, say), say)
            self._folders.append(folder)
            self.reports.append(manifest["report"])
            say(described(manifest["report"]))

    def __iter__(self) -> Iterator[Sourced]:
        return ((document.sources, document.text) for document in self.documents())

    def documents(self) -> Iterator[Document]:
        """Yield the documents that are left, with their numbers; those without any text are nothing for a step."""
        read = enumerate(self._data.sourced_documents())
        documents: Iterator[Document] = (Document(number, sources, text) for number, (sources, text) in read)
        if self._data.steps:
            documents = (document for document in documents if document.text and not document.text.isspace())
        if self._own:
            documents = self._without_own(documents)
        for folder in self._folders:
            documents = _passed(documents, folder)
        return documents

    def _without_own(self, documents: Iterator[Document]) -> Iterator[Document]:
        self.own_left_out = 0
        for document in documents:
            if document_hash(document.text) in self._own:
                self.own_left_out += 1
            else:
                yield document

    def write(self, folder: Path) -> None:
        """Write ``preparation.json`` and ``removed.jsonl`` into the cache entry of the tokens."""
        first, last = self.reports[0], self.reports[-1]
        whole = {f"{what}_in": first[f"{what}_in"] for what in ("documents", "characters")}
        whole |= {f"{what}_out": last[f"{what}_out"] for what in ("documents", "characters")}
        content = {"format": FORMAT, **whole, "steps": self.reports}
        write_bytes(folder / PREPARATION_FILE, json.dumps(content, indent=1).encode())
        with (folder / REMOVED_FILE).open("wb") as file:
            for each in self._folders:
                with (each / REMOVED_FILE).open("rb") as part:
                    shutil.copyfileobj(part, file)

    def described(self) -> list[dict[str, Any]]:
        """Return how much came into each step, and how much it removed and changed: for a run's fingerprint."""
        names = ("kind", "documents_in", "removed", "changed", "characters_in", "characters_out")
        return [{name: report[name] for name in names} for report in self.reports]


def described(report: dict[str, Any]) -> str:
    """Return what a step did in one line.

    Example:
        >>> described({"kind": "quality", "documents_in": 50, "removed": 2, "changed": 0, "removed_share": 0.04,
        ...            "removed_character_share": 0.01, "reasons": {"too short": 2}, "changes": {}})
        'quality: 50 documents in, 2 removed (4.0% of documents, 1.0% of characters): too short 2'
    """
    said = f"{report['kind']}: {many(report['documents_in'], 'document')} in, {report['removed']:,} removed"
    if report["removed"]:
        said += f" ({report['removed_share']:.1%} of documents, {report['removed_character_share']:.1%} of characters)"
        said += f": {_counted(report['reasons'])}"
    return said + (f"; {report['changed']:,} changed: {_counted(report['changes'])}" if report["changed"] else "")


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items(), key=lambda each: -each[1]))


class _Building:
    """Builds the cache entry of one step from the documents that the steps before it left."""

    def __init__(self, before: AfterSteps, number: int, step: Any, say: Say) -> None:
        self._before, self._number, self._step, self._say = before, number, step, say

    def __call__(self, folder: Path) -> dict[str, Any]:
        began = time.monotonic()
        # The step before has counted them; the first one's text is read once more, so that the time left can be told.
        reports = self._before.reports
        total = reports[-1]["documents_out"] if reports else sum(1 for _ in self._before.documents())
        tally = _Tally(self._number, self._step)
        with (
            (folder / REMOVED_FILE).open("w", encoding="utf-8") as removed,
            (folder / _CHANGED_FILE).open("w", encoding="utf-8") as changed,
        ):
            for verdict in self._told(self._step.judge(_Again(self._before)), total):
                tally.add(verdict)
                if verdict.removed:
                    removed.write(json.dumps(tally.listed(verdict)) + "\n")
                elif verdict.text != verdict.document.text:
                    changed.write(json.dumps([verdict.document.number, verdict.text]) + "\n")
        if tally.documents != total:
            raise DataError(
                f"data.steps: {self._step.kind} gave {tally.documents:,} verdicts for {many(total, 'document')}; a "
                "step gives one for each, in their order"
            )
        return {"report": tally.report(time.monotonic() - began)}

    def _told(self, verdicts: Iterable[Verdict], total: int) -> Iterator[Verdict]:
        """Say every few seconds how far it is and how long it will take."""
        began = due = 0.0
        for number, verdict in enumerate(verdicts):
            # From the first verdict on: before it a step may have read all of the text.
            if number == 0:
                began = due = time.monotonic()
            # The clock costs more than most verdicts.
            elif number % 64 == 0 and (now := time.monotonic()) >= due + SAY_SECONDS:
                left = (now - began) / number * (total - number)
                self._say(f"{self._step.kind}: {number:,} of {total:,} documents, about {left:.0f} s left")
                due = now
            yield verdict


class _Again:
    """The documents before a step, from the start each time they are gone through."""

    def __init__(self, before: AfterSteps) -> None:
        self._before = before

    def __iter__(self) -> Iterator[Document]:
        return self._before.documents()


class _Tally:
    """Counts of one step, and documents to read."""

    def __init__(self, number: int, step: Any) -> None:
        self._number, self._step = number, step
        self.documents = 0
        self._characters: Counter[str] = Counter()
        self._documents: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._changes: Counter[str] = Counter()
        self._facts: Counter[str] = Counter()
        self._examples = {which: _Sample() for which in ("kept", "removed", "changed")}

    def add(self, verdict: Verdict) -> None:
        """Count one verdict."""
        before, after = verdict.document.text, verdict.text
        changed = not verdict.removed and after != before
        which = "removed" if verdict.removed else "changed" if changed else "kept"
        self.documents += 1
        self._documents[which] += 1
        self._characters["in"] += len(before)
        self._facts.update(verdict.facts)
        if verdict.removed:
            self._reasons[verdict.removed] += 1
            self._characters["removed"] += len(before)
        else:
            self._characters["out"] += len(after)
            self._changes.update(verdict.changes)
        self._examples[which].add(verdict)

    def listed(self, verdict: Verdict) -> dict[str, Any]:
        """Return the line of a removed document."""
        return {"step": self._number, "kind": self._step.kind, **_example(verdict, LISTED_CHARACTERS)}

    def report(self, seconds: float) -> dict[str, Any]:
        """Return the report, JSON-able."""
        count, characters = max(1, self.documents), max(1, self._characters["in"])
        removed, changed = self._documents["removed"], self._documents["changed"]
        return {
            "step": self._number,
            "kind": self._step.kind,
            "settings": self._step.model_dump(mode="json", exclude={"kind"}),
            "seconds": round(seconds, 2),
            "documents_in": self.documents,
            "documents_out": self.documents - removed,
            "removed": removed,
            "changed": changed,
            "characters_in": self._characters["in"],
            "characters_out": self._characters["out"],
            "removed_characters": self._characters["removed"],
            "removed_share": removed / count,
            "removed_character_share": self._characters["removed"] / characters,
            "changed_share": changed / count,
            "reasons": dict(self._reasons.most_common()),
            "changes": dict(self._changes.most_common()),
            "facts": dict(self._facts.most_common()),
            **{
                f"{which}_examples": [_example(each, EXAMPLE_CHARACTERS) for each in sample.drawn()]
                for which, sample in self._examples.items()
            },
        }


class _Sample:
    """Ten of many, each with the same chance, the same ones every time (reservoir sampling, seeded)."""

    def __init__(self) -> None:
        self._draw, self._seen = random.Random(0), 0
        self._kept: list[Verdict] = []

    def add(self, verdict: Verdict) -> None:
        """Offer one."""
        self._seen += 1
        if len(self._kept) < EXAMPLES:
            self._kept.append(verdict)
        elif (place := self._draw.randrange(self._seen)) < EXAMPLES:
            self._kept[place] = verdict

    def drawn(self) -> list[Verdict]:
        """Return them in the order of the corpus."""
        return sorted(self._kept, key=lambda verdict: verdict.document.number)


def _example(verdict: Verdict, characters: int) -> dict[str, Any]:
    before, after = verdict.document.text, verdict.text
    found = {"number": verdict.document.number, "sources": list(verdict.document.sources), "characters": len(before)}
    if verdict.removed:
        return {**found, "reason": verdict.removed, "detail": verdict.detail, "text": before[:characters]}
    if before == after:
        return {**found, "text": before[:characters]}
    same = next((place for place, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), 0)
    begin = max(0, same - characters // 4)
    return {**found, "before": before[begin : begin + characters], "text": after[begin : begin + characters]}


def _passed(documents: Iterator[Document], folder: Path) -> Iterator[Document]:
    """Yield the documents that a step lets go on, as it changed them."""
    gone = (line["number"] for line in _lines(folder / REMOVED_FILE))
    changes = iter(_lines(folder / _CHANGED_FILE))
    next_gone, next_change = next(gone, None), next(changes, None)
    for document in documents:
        if document.number == next_gone:
            next_gone = next(gone, None)
        elif next_change is not None and document.number == next_change[0]:
            yield document._replace(text=next_change[1])
            next_change = next(changes, None)
        else:
            yield document


def _lines(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)
