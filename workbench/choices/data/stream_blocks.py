"""Blocks of a stream's tokens: made in order, of equal size, a bounded number of them on the disk."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np

from workbench.base.errors import DataError
from workbench.base.files import write_bytes
from workbench.choices.data.cache import cannot_write
from workbench.choices.data.order import KEPT_EPOCHS
from workbench.choices.data.tokens import TokenStore

# Shape legend: N tokens of a document or of a block, D documents of a block.

PLACES_FILE = "places.json"


class Number(NamedTuple):
    """A document by the pass over the stream, from 0, and its number in that pass."""

    passes: int
    document: int


class Place(NamedTuple):
    """Begin of a block: ``tokens`` of the document stand in blocks before."""

    passes: int
    document: int
    tokens: int


Read = Callable[[int, int], Iterator[tuple[Number, np.ndarray]]]
"""From pass and document to the training documents from there on, without end: number and framed ids, (N,)."""


class Blocks:
    """The tokens of a stream, cut into blocks of equal size; a block is made again where it lies on the disk no more.

    A block is a function of the stream and its number. The folder holds where each block begins, and blocks up to a
    number of bytes; the one that was not used for longest goes first. Processes that read one stream share it.

    Args:
        read: gives the documents from a place on.
        tokens: N, of a block.
        most_bytes: of the blocks on the disk.
    """

    def __init__(self, folder: Path, read: Read, tokens: int, most_bytes: int) -> None:
        self.tokens = tokens
        self._folder, self._read, self._most = folder, read, most_bytes
        self._lock = threading.Lock()
        self._kept: dict[int, TokenStore] = {}
        self._known = [Place(0, 0, 0)]
        self._at = -1
        self._coming: Iterator[tuple[TokenStore, Place]] = iter(())
        self._ahead: threading.Thread | None = None

    def block(self, number: int) -> TokenStore:
        """Return a block of N tokens, from memory or disk, or made; the next one is made meanwhile.

        Raises:
            DataError: the stream broke, or the disk is full.
        """
        store = self._found(number)
        if self._ahead is None or not self._ahead.is_alive():
            # A daemon: a network that hangs must not keep a process from ending.
            self._ahead = threading.Thread(target=self._prepare, args=(number + 1,), name="stream", daemon=True)
            self._ahead.start()
        return store

    def passes(self, number: int) -> int:
        """Return how many passes over the stream had ended where a block begins; of a later one, where known."""
        return self._known[min(number, len(self._known) - 1)].passes

    def _prepare(self, number: int) -> None:
        try:
            self._found(number)
        except (DataError, OSError):
            """Raised again where the block is asked for."""

    def _found(self, number: int) -> TokenStore:
        from filelock import FileLock

        with self._lock:
            if number not in self._kept:
                try:
                    self._folder.mkdir(parents=True, exist_ok=True)
                    with FileLock(self._folder / ".lock"):
                        store = self._load(number) or self._make(number)
                except OSError as error:
                    raise DataError(cannot_write(self._folder, error)) from error
                self._kept[number] = store
                while len(self._kept) > KEPT_EPOCHS + 1:
                    del self._kept[next(iter(self._kept))]
            return self._kept[number]

    def _load(self, number: int) -> TokenStore | None:
        path = self._path(number)
        try:
            with np.load(path) as found:
                store = TokenStore(found["ids"], found["offsets"])
            os.utime(path)
        except (OSError, ValueError, KeyError, BadZipFile):
            return None
        return store if store.tokens == self.tokens == len(store.ids_N) else None

    def _make(self, number: int) -> TokenStore:
        """Make a block, and those before it whose end nobody knows yet."""
        places = self._places()
        for each in range(min(number, len(places) - 1), number + 1):
            if each != self._at:
                self._coming, self._at = self._from(places[each]), each
            try:
                store, end = next(self._coming)
            except BaseException:
                # A generator that has raised is at its end.
                self._at = -1
                raise
            self._at += 1
            self._write(each, store)
            if len(places) == each + 1:
                places.append(end)
                write_bytes(self._folder / PLACES_FILE, json.dumps(places).encode(), durable=False)
        return store

    def _from(self, place: Place) -> Iterator[tuple[TokenStore, Place]]:
        """Yield blocks from a place on, and where each ends."""
        skipped, done, current = place.tokens, 0, Number(-1, -1)
        pieces: list[np.ndarray] = []
        left = self.tokens
        for number, framed_N in self._read(place.passes, place.document):
            if number != current:
                current, done = number, 0
            ids_N = framed_N[skipped:]
            done += len(framed_N) - len(ids_N)
            skipped -= len(framed_N) - len(ids_N)
            while len(ids_N):
                piece, ids_N = ids_N[:left], ids_N[left:]
                pieces.append(piece)
                left -= len(piece)
                done += len(piece)
                if not left:
                    offsets_D1 = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
                    yield TokenStore(np.concatenate(pieces), offsets_D1), Place(*number, done)
                    pieces, left = [], self.tokens

    def _write(self, number: int, store: TokenStore) -> None:
        for left_over in self._folder.glob("*.tmp"):
            left_over.unlink(missing_ok=True)
        aside = self._folder / f"{number}.tmp"
        room = self._most - store.ids_N.nbytes - store.offsets_D1.nbytes - (1 << 10)
        files = sorted((path.stat().st_mtime_ns, path, path.stat().st_size) for path in self._folder.glob("*.npz"))
        total = sum(size for _, _, size in files)
        for _, path, size in files:
            if total <= room:
                break
            path.unlink(missing_ok=True)
            total -= size
        with aside.open("wb") as file:
            np.savez(file, ids=store.ids_N, offsets=store.offsets_D1)
        aside.replace(self._path(number))

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.npz"

    def _places(self) -> list[Place]:
        """Return where each block begins, as far as it is known: of one more than were ever made."""
        try:
            self._known = [Place(*place) for place in json.loads((self._folder / PLACES_FILE).read_text())]
        except (OSError, ValueError, TypeError):
            # Read again from the start.
            self._known = [Place(0, 0, 0)]
        return self._known
