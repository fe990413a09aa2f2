"""The rows of a step as the model sees them, and what they are made of."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from tokenizers import Tokenizer

from workbench.base.errors import DataError, RunError
from workbench.choices.data.data import Say
from workbench.choices.data.examples import Examples
from workbench.choices.data.order import RowOrder
from workbench.choices.data.prepare import is_prepared, prepare
from workbench.choices.data.sides import origins
from workbench.choices.data.tokens import PreparedData
from workbench.choices.objectives.objective import Objective
from workbench.choices.objectives.two_networks import TwoNetworks
from workbench.choices.own import OwnLoader
from workbench.choices.progress import LOOK_AHEAD, Progress
from workbench.recipes.recipe import Recipe
from workbench.seen.course import Course, Step
from workbench.seen.page import rows_html, rows_text
from workbench.store.find import find, typed
from workbench.store.folder import RunFolder, read_object
from workbench.training.assemble import row_order
from workbench.training.forks import check_data

# Shape legend: B rows, T positions of a row.

MOST_ROWS = 256
"""Rows that are shown at a time."""


class HasFolder(Protocol):
    """A run, as :class:`workbench.client.run.Run` is one."""

    folder: RunFolder


@dataclass(frozen=True)
class Piece:
    """A part of a document in a row; a document that was cut goes on in another row, from position 0.

    Attributes:
        begin, end: places in the row.
        document: its number in the training split, from 0. offset: tokens of it before this piece. size: its tokens.
        source: part of a mixture that it is of, and what it comes from there; empty where neither is known.
    """

    begin: int
    end: int
    document: int
    offset: int
    size: int
    source: str = ""


@dataclass(frozen=True)
class Row:
    """A row of T tokens as the model sees it, one entry per place.

    Attributes:
        step: that reads it. place: in the batch of that step. sample: its index. epoch: of the text.
        tokens: ids of the text. seen: ids that the model reads. texts: of those. joined: it continues the word before.
        marks: names in :data:`workbench.choices.objectives.preview.MARKS`.
        targets: texts of what is to be predicted there (``next``: of the token behind); empty where nothing is.
        positions: as the model counts them, from 0 in each piece.
        pieces: of documents, in order.
    """

    step: int
    place: int
    sample: int
    epoch: int
    tokens: tuple[int, ...]
    seen: tuple[int, ...]
    texts: tuple[str, ...]
    joined: tuple[bool, ...]
    marks: tuple[str, ...]
    targets: tuple[str, ...]
    positions: tuple[int, ...]
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Rows:
    """Some rows of a step.

    Attributes:
        name: of the recipe or run. step: counted from 0. past: whether the run has taken it.
        rows: those shown. batch: rows of the step. length: tokens per row. tokens: read before the step.
        epochs: passes over the text before the step.
        notes: what cannot be seen here.
    """

    name: str
    step: int
    past: bool
    rows: tuple[Row, ...]
    batch: int
    length: int
    tokens: int
    epochs: float
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return asdict(self)

    def __str__(self) -> str:
        return rows_text(self.to_dict())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return rows_html(self.to_dict())


class Reader:
    """The text of a recipe or run, prepared, and the rows of its steps.

    Args:
        recipe: as launched. folder: of the run; None for a recipe.
        say: called with a line while text is prepared; None refuses text that is not prepared here.

    Raises:
        DataError: the text cannot be had, or is another one by now.
        RunError: rows of such a run are not made of text.
    """

    def __init__(self, recipe: Recipe, folder: RunFolder | None, say: Say | None) -> None:
        if isinstance(recipe.data, Examples | OwnLoader):
            raise RunError(
                f"data '{recipe.data.kind}' has no rows of text to show; ask for a recipe or run that trains on text"
            )
        self.course, self.recipe, self.folder = Course(recipe, folder), recipe, folder
        if say is None and not is_prepared(recipe.data):
            raise DataError(
                "the text of this run is not prepared here; `workbench rows` with its name prepares it, or launch it"
            )
        self.prepared: PreparedData = prepare(recipe.data, say or (lambda line: None))
        if folder is not None:
            check_data(folder.id, read_object(folder.environment).get("data"), self.prepared.fingerprint)
        self.order = row_order(recipe, self.prepared)
        self.tokenizer = Tokenizer.from_file(self.prepared.tokenizer_file)
        # A sample of the documents has numbers of its own.
        self._origins = [] if recipe.data.tokens_limit else origins(Path(self.prepared.tokenizer_file).parent)
        self._texts: dict[int, str] = {}

    @property
    def name(self) -> str:
        """The run's id, or the recipe's name."""
        return self.folder.id if self.folder else self.recipe.name

    def rows(self, step: int, first: int = 0, most: int = 4) -> Rows:
        """Return rows of a step.

        Args:
            step: counted from 0. first: the first of its rows to show. most: rows.

        Raises:
            RunError: the step is not known, or has no such row.
        """
        batch = self.course.at(step)
        if not 0 <= first < batch.rows:
            raise RunError(f"step {step:,} has no row {first}; its rows are 0 to {batch.rows - 1}")
        order = self.order.of_length(batch.length)
        begin = order.first_sample(batch.progress.tokens)
        samples_B = np.arange(begin + first, begin + min(batch.rows, first + min(most, MOST_ROWS)))
        rows = self.shown(batch, order, samples_B, begin)
        return Rows(
            name=self.name, step=step, past=step < self.course.done, rows=rows, batch=batch.rows, length=batch.length,
            tokens=batch.progress.tokens, epochs=round(begin / order.rows, 3), notes=self._notes(batch),
        )  # fmt: skip

    def shown(self, step: Step, order: RowOrder, samples_B: np.ndarray, begin: int) -> tuple[Row, ...]:
        """Return rows of a step as its model sees them.

        Args:
            order: in rows of its length. samples_B: of the rows. begin: sample of the first row of the step.
        """
        batch, objective = order.batch(samples_B), step.recipe.objective
        progress = known(step.progress)
        marked = objective.shown_rows(batch, self.prepared.vocabulary, progress, self.recipe.seed)
        pieces, places_BT = self.prepared.vocabulary.pieces, order.places(samples_B)
        epochs_B = order.epochs_of(samples_B)
        rows = []
        for index, places in enumerate(marked):
            sample = int(samples_B[index])
            rows.append(
                Row(
                    step=step.progress.step, place=sample - begin, sample=sample, epoch=int(epochs_B[index]),
                    tokens=tuple(batch.tokens_BT[index].tolist()), seen=tuple(place.token for place in places),
                    texts=tuple(self.text(place.token) for place in places),
                    joined=tuple(bool(pieces and pieces.continues(place.token)) for place in places),
                    marks=tuple(place.mark for place in places),
                    targets=tuple("" if place.target is None else self.text(place.target) for place in places),
                    positions=tuple(batch.positions_BT[index].tolist()),
                    pieces=self._pieces(places_BT[index], batch.documents_BT[index].numpy()),
                )
            )  # fmt: skip
        return tuple(rows)

    def text(self, token: int) -> str:
        """Return the text of a token without the space before it; bytes that are no text alone as numbers."""
        if token not in self._texts:
            pieces = self.prepared.vocabulary.pieces
            name = pieces.text(token) if pieces else str(token)
            # Vocabularies of bytes write each as a sign of its own.
            if pieces and pieces.mark == "\u0120" and token not in self.prepared.vocabulary.special:
                read = self.tokenizer.decode([token], skip_special_tokens=False)
                name = read.strip(" ") if "\ufffd" not in read else name
            self._texts[token] = name or " "
        return self._texts[token]

    def source(self, split: str, document: int) -> str:
        """Return the part of a mixture that a document of a split is of, and what it comes from where that is known."""
        parts = self.prepared.parts.items()
        part = next((name for name, part in parts if document in getattr(part, split)), "")
        run = bisect_right(self._origins, document, key=lambda each: each[0]) - 1 if split == "train" else -1
        return "/".join(filter(None, [part, self._origins[run][1] if run >= 0 else ""]))

    def _pieces(self, places_T: np.ndarray, documents_T: np.ndarray) -> tuple[Piece, ...]:
        offsets_D1 = self.prepared.train.offsets_D1
        bounds = np.flatnonzero(np.diff(documents_T, prepend=-1)).tolist()
        found = []
        for begin, end in zip(bounds, [*bounds[1:], len(documents_T)], strict=True):
            document = int(np.searchsorted(offsets_D1, places_T[begin], side="right")) - 1
            start, stop = (int(offset) for offset in offsets_D1[document : document + 2])
            source = self.source("train", document)
            found.append(Piece(begin, end, document, int(places_T[begin]) - start, stop - start, source))
        return tuple(found)

    def _notes(self, step: Step) -> tuple[str, ...]:
        objective: Objective = step.recipe.objective
        notes = []
        if len(set(map(str, (objective.scheduled_values(each) for each in timed(step.progress))))) > 1:
            notes.append("marks are those of the start of the budget: rates are scheduled by seconds of training, and "
                         "this run has not recorded those of this step")  # fmt: skip
        if isinstance(objective, TwoNetworks):
            notes.append("these rows are the generator's; the main network reads them with its guesses at the marked "
                         "places, which its weights decide")  # fmt: skip
        if step.recipe.engine().padding == "kept":
            notes.append("execution.padding 'kept': each piece stands in a row of its own, filled up with [PAD]")
        return tuple(notes)


def timed(progress: Progress) -> list[Progress]:
    """Return a progress, or where its seconds are not known (NaN) several that stand for all there may be."""
    if not math.isnan(progress.seconds):
        return [progress]
    longest = progress.budget.amount if progress.budget.unit == "seconds" else 86_400.0
    return [replace(progress, seconds=longest * share / LOOK_AHEAD) for share in range(LOOK_AHEAD + 1)]


def known(progress: Progress) -> Progress:
    """Return a progress at 0 seconds where they are not known."""
    return timed(progress)[0]


def reader_of(
    run_or_recipe: Recipe | HasFolder | str | Path, runs_dir: str | Path | None = None, say: Say | None = print
) -> Reader:
    """Return the reader of a recipe, or of a run by its id, name or folder.

    Raises:
        RunError: no such run. DataError: its text cannot be had.
    """
    if isinstance(run_or_recipe, Recipe):
        return Reader(run_or_recipe, None, say)
    folder = find(*typed(run_or_recipe, runs_dir)) if isinstance(run_or_recipe, str | Path) else run_or_recipe.folder
    return Reader(Recipe.load(folder.recipe), folder, say)
