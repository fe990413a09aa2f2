"""Text that is read while a run trains: its tokens come in blocks, of which a bounded number lies on the disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from workbench.base.cache_folder import cache_folder
from workbench.base.errors import DataError
from workbench.choices.choice import Problem, knob
from workbench.choices.data.cache import key_of
from workbench.choices.data.cutting import batched
from workbench.choices.data.data import Data
from workbench.choices.data.encoding import BATCH_CHARACTERS, framed_documents
from workbench.choices.data.order import KEPT_EPOCHS, Arrange, RowOrder
from workbench.choices.data.split import document_hash
from workbench.choices.data.stream_blocks import Blocks, Number, Read
from workbench.choices.data.tokens import Batch, PreparedData, TokenStore

if TYPE_CHECKING:
    pass

# Shape legend: B rows of a batch, T positions of a row, N tokens of a document or of a block, D documents of a block.

FEWEST_BLOCKS = 4
"""Blocks that fit on the disk at least: the one that is read, the next, and two behind them."""
TOKEN_BYTES = 4
WAITS = (1.0, 5.0, 25.0)
"""Seconds before each further try to go on with a stream that broke; after the last the run ends, and can resume."""


class Streamed(Data):
    """Base of the data whose text can be read while a run trains."""

    stream: int = knob(
        0, "read the text while training; so many documents at its start make vocabulary and held-out text; 0: prepare "
        "all first", unit="documents", ge=0, le=1 << 30,
    )  # fmt: skip
    stream_block: int = knob(
        1 << 22, "of a stream, tokens that are shuffled together", unit="tokens", ge=1 << 10, le=1 << 30, scale="log"
    )
    stream_mib: int = knob(
        1024, "of a stream, disk for tokens that are made ahead or were read", unit="MiB", ge=1, le=1 << 24, scale="log"
    )

    def open_stream(self, first: int) -> Iterator[str]:
        """Return the documents from number ``first`` on, as :meth:`documents` gives them, without keeping any.

        Raises:
            DataError: as :meth:`documents`; the stream broke.
        """
        raise NotImplementedError

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Yield what needs all of the text, which a stream never has, and too little disk."""
        yield from super().problems(recipe)
        if self.stream:
            yield from self.stream_problems()

    def stream_problems(self) -> Iterator[Problem]:
        """Yield what is wrong with it as a stream."""
        whole = {"data.steps": bool(self.steps), "data.tokens_limit": bool(self.tokens_limit),
                 "data.order": self.order.kind != "shuffled"}  # fmt: skip
        for path, used in whole.items():
            if used:
                yield Problem(path, "needs all of the text, and a stream is not read before training; set data.stream "
                                    "to 0, or leave this as it is by default")  # fmt: skip
        needed = FEWEST_BLOCKS * TOKEN_BYTES * self.stream_block
        if needed > self.stream_mib << 20:
            yield Problem("data.stream_mib", f"{self.stream_mib:,} MiB hold no {FEWEST_BLOCKS} blocks of "
                                             f"{self.stream_block:,} tokens; use at least {-(-needed >> 20):,}, or a "
                                             "smaller data.stream_block")  # fmt: skip
        if self.longest > self.stream_block:
            yield Problem("data.stream_block", f"a block holds no row of {self.longest:,} tokens; use a larger one")

    def problems_together(self, recipe: Any, processes: int) -> Iterator[Problem]:
        """Yield that a stream is for one process."""
        yield from super().problems_together(recipe, processes)
        if self.stream:
            yield Problem(
                "data.stream", "a stream is read by one process; prepare the text (0), or train in one process"
            )

    def notices(self) -> Iterator[Problem]:
        """Yield what a stream does not know before it was read."""
        yield from super().notices()
        if self.stream:
            yield Problem("data.stream", f"vocabulary, held-out text and baselines are made from the first "
                                         f"{self.stream:,} documents; of what follows, a document is left out of "
                                         "training only where it is a held-out one, word for word")  # fmt: skip

    def row_order(self, prepared: PreparedData, seed: int) -> RowOrder:
        """See :meth:`Data.row_order`; of a stream, rows (B, T) of one block after the other."""
        return self.stream_order(prepared, seed) if self.stream else super().row_order(prepared, seed)

    def stream_order(self, prepared: PreparedData, seed: int, foreign: frozenset[int] = frozenset()) -> RowOrder:
        """Return rows (B, T) of one block after the other.

        Args:
            foreign: hashes of documents that other parts of a mixture hold out; they are left out.
        """
        key = key_of({"tokens": prepared.fingerprint["key"], "block": self.stream_block})
        blocks = Blocks(cache_folder() / "streams" / key, self._training(prepared, foreign), self.stream_block,
                        self.stream_mib << 20)  # fmt: skip
        return StreamOrder(prepared.train, blocks, self.longest, seed, self.order.arrange(prepared))

    def _training(self, prepared: PreparedData, foreign: frozenset[int]) -> Read:
        """Return the reader of the framed training documents from a place on."""
        from tokenizers import Tokenizer

        from workbench.choices.data.sides import Texts

        # As it was split when it was prepared: a function of the first documents alone.
        texts = Texts(self, _quiet)
        split = texts.sides[""].split
        held = foreign | {document_hash(text) for text in texts.all(heldout=True)}
        tokenizer = Tokenizer.from_file(prepared.tokenizer_file)
        tokenizer.encode_special_tokens = True
        dtype = np.dtype("<u2" if prepared.vocabulary.size <= 1 << 16 else "<u4")

        def training(passes: int, first: int) -> Iterator[_Text]:
            for number, text in passages(self.open_stream, passes, first):
                if split is not None and number.document < self.stream:
                    kept = (side.text for side in split.sides((), text) if not side.heldout)
                    yield from (_Text(number, each) for each in kept if document_hash(each) not in foreign)
                elif document_hash(text) not in held:
                    yield _Text(number, text)

        def read(passes: int, first: int) -> Iterator[tuple[Number, np.ndarray]]:
            for batch in batched(training(passes, first), BATCH_CHARACTERS, size=lambda each: len(each.text)):
                framed = framed_documents(tokenizer, prepared.vocabulary, [each.text for each in batch])
                for each, ids_N in zip(batch, framed, strict=True):
                    if len(ids_N) > 2:
                        yield each.number, ids_N.astype(dtype)

        return read


class _Text(NamedTuple):
    number: Number
    text: str


def passages(open_stream: Callable[[int], Iterator[str]], passes: int, first: int) -> Iterator[tuple[Number, str]]:
    """Yield the documents of a stream with their numbers, pass after pass.

    A stream that breaks is opened again at the document that is due.

    Raises:
        DataError: it broke again and again at one document, or holds none.
    """
    number, tries, found = first, 0, bool(first)
    while True:
        try:
            for text in open_stream(number):
                yield Number(passes, number), text
                number, tries, found = number + 1, 0, True
        except (DataError, OSError) as error:
            if tries == len(WAITS):
                raise DataError(
                    f"the stream broke off at document {number:,}, and {len(WAITS)} further tries ended there, too: "
                    f"{error}; the run can be resumed from its last checkpoint"
                ) from error
            time.sleep(WAITS[tries])
            tries += 1
            continue
        if not found:
            raise DataError("the stream holds no document; check data.paths, or data.name and data.split")
        passes, number, found = passes + 1, 0, False


class StreamOrder(RowOrder):
    """Rows of a stream by sample index: block after block, documents and rows of each in an order of their own.

    Args:
        store: training documents of the start of the stream, that were prepared.
    """

    def __init__(self, store: TokenStore, blocks: Blocks, sequence_length: int, seed: int, arrange: Arrange) -> None:
        self.store, self.seed, self.arrange, self.sequence_length = store, seed, arrange, sequence_length
        self.blocks, self.rows = blocks, blocks.tokens // sequence_length
        self._orders: dict[int, RowOrder] = {}

    def of_length(self, sequence_length: int) -> RowOrder:
        """See :meth:`RowOrder.of_length`; rows of (T,) tokens."""
        if sequence_length == self.sequence_length:
            return self
        return StreamOrder(self.store, self.blocks, sequence_length, self.seed, self.arrange)

    def arranged(self, arrange: Callable[[RowOrder], RowOrder]) -> RowOrder:
        """Return the rows (B, T) as they are; refuse an objective that builds others out of the whole text.

        Raises:
            DataError: says which knob to change.
        """
        if arrange(self) is not self:
            raise DataError("data.stream: this objective builds its rows out of all documents; set data.stream to 0")
        return self

    def batch(self, samples: np.ndarray) -> Batch:
        """See :meth:`RowOrder.batch`; (B, T)."""
        samples_B = np.ascontiguousarray(samples, dtype=np.int64)
        shape = (len(samples_B), self.sequence_length)
        batch = Batch(torch.empty(shape, dtype=torch.int64), torch.empty(shape, dtype=torch.int64),
                      torch.empty(shape, dtype=torch.int32), torch.from_numpy(samples_B))  # fmt: skip
        for block in np.unique(samples_B // self.rows):
            here_B = np.flatnonzero(samples_B // self.rows == block)
            # To the rows of one block its number is the epoch, so each is shuffled in another way.
            found = self._order(int(block)).batch(samples_B[here_B])
            for whole, rows in zip(batch[:3], found[:3], strict=True):
                whole[torch.from_numpy(here_B)] = rows
        return batch

    def places(self, samples: np.ndarray) -> np.ndarray:
        """Refuse to say where tokens (B, T) stand in the prepared text: they do not.

        Raises:
            DataError: always.
        """
        raise DataError("the rows of a stream stand in no prepared text; set data.stream to 0 to look at rows")

    def samples_of(self, begin: int, end: int, epoch: int) -> np.ndarray:
        """Refuse to look for the samples (B,) that read a document, as :meth:`places`."""
        return self.places(np.arange(begin, end))

    def epochs_of(self, samples: np.ndarray) -> np.ndarray:
        """Return the pass over the stream in which the blocks of some samples begin, int64 (B,)."""
        return np.array([self.blocks.passes(int(block)) for block in samples // self.rows], np.int64)

    def read(self, sample: int) -> dict[str, float]:
        """See :meth:`RowOrder.read`: passes over the stream that had ended where the block of the last row begins."""
        return {"data.epochs": float(self.blocks.passes(max(0, sample - 1) // self.rows))}

    def _order(self, block: int) -> RowOrder:
        if block not in self._orders:
            while len(self._orders) >= KEPT_EPOCHS:
                del self._orders[next(iter(self._orders))]
            self._orders[block] = RowOrder(self.blocks.block(block), self.sequence_length, self.seed, self.arrange)
        return self._orders[block]


def _quiet(line: str) -> None:
    """Say nothing: it was said when the text was prepared."""
