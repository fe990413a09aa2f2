"""A text traced to the documents that hold it, to the steps that read them, or to the step that left it out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from workbench.base.errors import DataError
from workbench.choices.data.order import RowOrder
from workbench.choices.data.preparation import Preparation
from workbench.choices.data.tokens import TokenStore
from workbench.seen.course import Steps
from workbench.seen.page import found_html, found_text
from workbench.seen.rows import Reader, Row

# Shape legend: N tokens of a split, S steps, K tokens of a text that is looked for.

MOST_PLACES, MOST_READINGS = 20, 200
"""Places of a text that are traced, and readings of each that are listed."""
MOST_CHARACTERS = 300_000_000
AROUND = 12
"""Tokens before and behind a place that are shown with it."""
_CHUNK = 1 << 22


@dataclass(frozen=True)
class Reading:
    """One time that a step reads a text.

    Attributes:
        step: counted from 0. place: of the row in its batch. epoch: of the text. past: the run has taken that step.
    """

    step: int
    place: int
    epoch: int
    past: bool


@dataclass(frozen=True)
class Place:
    """A place of the text.

    Attributes:
        split: ``train`` or ``heldout``, which no step reads. document: its number there. offset: tokens before it.
        source: part of a mixture that it is of.
        text: with what stands around it. readings: up to 200, by step. times: how often the run has read it so far.
        planned: how often it reads it in all, as far as that is known.
    """

    split: str
    document: int
    offset: int
    text: str
    source: str = ""
    readings: tuple[Reading, ...] = ()
    times: int = 0
    planned: int = 0


@dataclass(frozen=True)
class Found:
    """Places of a text, and the steps that read it.

    Attributes:
        name: of the recipe or run. text: that was looked for. done: steps that the run has taken.
        total: places in all. places: the first 20 of them. rows: that hold the text, as the model sees them.
        removed: documents with the text that a preparation step left out: ``kind``, ``reason``, ``detail``, ``number``,
            ``sources``, ``text``.
    """

    name: str
    text: str
    done: int
    total: int
    places: tuple[Place, ...]
    rows: tuple[Row, ...]
    removed: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return asdict(self)

    def __str__(self) -> str:
        return found_text(self.to_dict())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return found_html(self.to_dict())


def find_text(reader: Reader, text: str, rows: int = 4) -> Found:
    """Find a text, as whole words, and the steps that read it.

    Args:
        reader: of the recipe or run. text: to look for, as the tokenizer reads it. rows: to show.

    Raises:
        DataError: nothing to look for.
    """
    if not text.strip():
        raise DataError("there is nothing to look for: give some words of the text")
    patterns = spellings(reader, text)
    train = list(occurrences(reader.prepared.train, patterns))
    heldout = list(occurrences(reader.prepared.heldout, patterns))
    steps = reader.course.steps()
    places = readings_of(reader, steps, train[:MOST_PLACES])
    shown = tuple(_row(reader, place) for place in places if place.readings)[:rows]
    for begin, end in heldout[: MOST_PLACES - len(places)]:
        places.append(_place(reader, "heldout", begin, end))
    total = len(train) + len(heldout)
    removed = tuple(left_out(reader, text))
    return Found(reader.name, text, reader.course.done, total, tuple(places), shown, removed)


def spellings(reader: Reader, text: str) -> list[np.ndarray]:
    """Return the tokens of a text, (K,) each, at the beginning of a document and behind a space."""
    reader.tokenizer.encode_special_tokens = True
    written = (text.strip(), f" {text.strip()}")
    found = {tuple(reader.tokenizer.encode(each, add_special_tokens=False).ids) for each in written}
    return [np.array(ids, np.int64) for ids in sorted(found) if ids]


def occurrences(store: TokenStore, patterns: Sequence[np.ndarray]) -> Iterator[tuple[int, int]]:
    """Yield begin and end of every place in a store where one of the patterns (K,) stands, rising."""
    ids_N = np.asarray(store.ids_N)
    longest = max((len(pattern) for pattern in patterns), default=0)
    for start in range(0, len(ids_N), _CHUNK):
        # A little further: a place may lie across the border.
        part_N = ids_N[start : start + _CHUNK + longest - 1]
        found: list[tuple[int, int]] = []
        for pattern in patterns:
            begins = np.flatnonzero(part_N[: len(part_N) - len(pattern) + 1] == pattern[0])
            for place, token in enumerate(pattern[1:], 1):
                begins = begins[part_N[begins + place] == token]
            found += [(start + begin, start + begin + len(pattern)) for begin in begins.tolist() if begin < _CHUNK]
        yield from sorted(found)


def readings_of(reader: Reader, steps: Steps, found: Sequence[tuple[int, int]]) -> list[Place]:
    """Return places of the training split with the steps that read them."""
    readings: list[list[Reading]] = [[] for _ in found]
    for length in np.unique(steps.length_S).tolist():
        here_S = steps.length_S == length
        order = reader.order.of_length(length)
        first_S = -(-steps.tokens_S[here_S] // length)
        last = int((first_S + steps.rows_S[here_S]).max()) - 1
        for epoch in range(_epochs(order, last)):
            for (begin, end), into in zip(found, readings, strict=True):
                into += _readings(reader, order, order.samples_of(begin, end, epoch), first_S,
                                  steps.step_S[here_S], steps.rows_S[here_S])  # fmt: skip
    places = []
    for (begin, end), read in zip(found, readings, strict=True):
        read.sort(key=lambda each: (each.step, each.place))
        times = sum(reading.past for reading in read)
        place = _place(reader, "train", begin, end)
        places.append(replace(place, readings=tuple(read[:MOST_READINGS]), times=times, planned=len(read)))
    return places


def _epochs(order: RowOrder, last: int) -> int:
    """Return how many passes over a text begin up to a sample; of a mixture, over the part with the most."""
    told = [value for name, value in order.read(last).items() if name.startswith("data.epochs/")]
    return 1 + (int(max(told)) if told else last // order.rows)


def _readings(
    reader: Reader, order: RowOrder, samples: np.ndarray, first_S: np.ndarray, step_S: np.ndarray, rows_S: np.ndarray
) -> Iterator[Reading]:
    """Yield the readings of samples by steps whose first samples are given."""
    at = np.searchsorted(first_S, samples, side="right") - 1
    for sample, place in zip(samples.tolist(), at.tolist(), strict=True):
        row = sample - int(first_S[place]) if place >= 0 else -1
        if 0 <= row < rows_S[place]:
            step = int(step_S[place])
            yield Reading(step, row, int(order.epochs_of(np.array([sample]))[0]), step < reader.course.done)


def _place(reader: Reader, split: str, begin: int, end: int) -> Place:
    store: TokenStore = getattr(reader.prepared, split)
    document = int(np.searchsorted(store.offsets_D1, begin, side="right")) - 1
    start, stop = int(store.offsets_D1[document]), int(store.offsets_D1[document + 1])
    shown = np.asarray(store.ids_N[max(start, begin - AROUND) : min(stop, end + AROUND)]).tolist()
    return Place(split, document, begin - start, reader.tokenizer.decode(shown), reader.source(split, document))


def _row(reader: Reader, place: Place) -> Row:
    """Return the row of a place's first reading."""
    reading = place.readings[0]
    return reader.rows(reading.step, reading.place, 1).rows[0]


def left_out(reader: Reader, text: str) -> list[dict[str, Any]]:
    """Return documents with a text that a preparation step left out, with step and reason.

    Reports keep the beginnings of such documents. The corpus is read once more for what stands behind them, unless it
    is larger than :data:`MOST_CHARACTERS`.
    """
    preparation = Preparation(Path(reader.prepared.tokenizer_file).parent)
    removed, wanted = list(preparation.removed()), text.strip().casefold()
    numbers = {each["number"] for each in removed if wanted in each["text"].casefold()}
    if removed and (preparation.characters_in or 0) <= MOST_CHARACTERS:
        documents = enumerate(reader.recipe.data.sourced_documents())
        numbers |= {number for number, (_, each) in documents if wanted in each.casefold()}
    return [each for each in removed if each["number"] in numbers][:MOST_PLACES]
