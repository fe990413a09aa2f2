"""Documents out of token files: raw ids, ids behind llm.c's header, and numpy's .npy; read in chunks, never mapped."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from workbench.base.errors import DataError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

ENDINGS = (".bin", ".npy")
HEADERS: dict[int, np.dtype] = {20240520: np.dtype("<u2"), 20240801: np.dtype("<u4")}
"""First number of llm.c's header (256 int32: magic, version, tokens) and the dtype of the ids behind it."""
_HEADER_BYTES = 1024
CHUNK_TOKENS = 1 << 20
LOOKED_AT = 1 << 20
"""Ids at the start of a file among which its separator is looked for."""
LONGEST_DOCUMENT = 1 << 24
_SEPARATORS = ("<|endoftext|>", "<|bos|>", "<|end_of_text|>", "<|begin_of_text|>", "</s>", "<s>", "[SEP]", "[CLS]",
               "<eos>", "<bos>")  # fmt: skip


class TokenPlace(NamedTuple):
    """Place of the ids in a file: ``tokens`` of ``dtype`` from byte ``begin`` on."""

    path: Path
    dtype: np.dtype
    begin: int
    tokens: int

    def chunks(self, size: int = 0) -> Iterator[np.ndarray]:
        """Yield the ids in order, int64 of shape (N,), ``size`` or a million at a time."""
        with self.path.open("rb") as file:
            file.seek(self.begin)
            left = self.tokens
            while left:
                ids_N = np.fromfile(file, self.dtype, min(left, size or CHUNK_TOKENS))
                left -= len(ids_N)
                if not len(ids_N):
                    raise DataError(f"'{self.path}' became shorter while it was read")
                yield ids_N.astype(np.int64)


def place_of(path: Path, dtype: str) -> TokenPlace:
    """Return where the ids of a file stand.

    Args:
        dtype: of a .bin without a header, ``uint16`` or ``uint32``.

    Raises:
        DataError: empty, cut off, of another dtype or shape.
    """
    try:
        return (
            _npy_place(path) if path.suffix.lower() == ".npy" else _bin_place(path, np.dtype(dtype).newbyteorder("<"))
        )
    except OSError as error:
        raise DataError(f"'{path}' cannot be read: {error}") from None


def _bin_place(path: Path, dtype: np.dtype) -> TokenPlace:
    size = path.stat().st_size
    if not size:
        raise DataError(f"'{path}' is empty")
    header = np.fromfile(path, "<i4", 3)
    if size >= _HEADER_BYTES and len(header) == 3 and int(header[0]) in HEADERS:
        dtype = HEADERS[int(header[0])]
        held, rest = divmod(size - _HEADER_BYTES, dtype.itemsize)
        if rest or held != int(header[2]):
            raise DataError(
                f"'{path}' is damaged: its header says {int(header[2]):,} tokens, and it holds {held:,}; fetch or "
                "write it again"
            )
        return TokenPlace(path, dtype, _HEADER_BYTES, held)
    if size % dtype.itemsize:
        raise DataError(f"'{path}' has {size:,} bytes, no multiple of the {dtype.itemsize} of {dtype.name}; it is cut "
                        "off, or data.dtype is another")  # fmt: skip
    return TokenPlace(path, dtype, 0, size // dtype.itemsize)


def _npy_place(path: Path) -> TokenPlace:
    with path.open("rb") as file:
        try:
            major = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if major == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(file)
        except ValueError as error:
            raise DataError(f"'{path}' is no .npy file: {error}") from None
        begin = file.tell()
    if len(shape) != 1 or dtype.kind not in "iu":
        raise DataError(f"'{path}' holds {dtype.name} of shape {shape}, expected one row of whole numbers")
    held = (path.stat().st_size - begin) // dtype.itemsize
    if held != shape[0]:
        raise DataError(f"'{path}' is damaged: its header says {shape[0]:,} tokens, and it holds {held:,}")
    if not held:
        raise DataError(f"'{path}' is empty")
    return TokenPlace(path, dtype, begin, held)


def separator_of(place: TokenPlace, tokenizer: Tokenizer) -> int | None:
    """Return the id that ends (or begins) documents: of the tokenizer's that mean it, the most frequent at the start.

    None where none of them stands in the first million tokens.
    """
    known = [found for name in _SEPARATORS if (found := tokenizer.token_to_id(name)) is not None]
    ids_N = next(place.chunks(LOOKED_AT))
    counts = [(int((ids_N == each).sum()), -number, each) for number, each in enumerate(known)]
    most = max(counts, default=(0, 0, 0))
    return most[2] if most[0] else None


def token_documents(
    places: Sequence[TokenPlace], ids: int, separator: int | None, document_tokens: int
) -> Iterator[np.ndarray]:
    """Yield the documents of token files, int64 ids of shape (N,) each, without what separates them.

    Args:
        ids: of the tokenizer; all ids must be below.
        separator: between documents; a file without it is cut into documents of ``document_tokens``.

    Raises:
        DataError: an id that the tokenizer does not have.
    """
    for place in places:
        rest = np.empty(0, np.int64)
        done = 0
        for chunk in place.chunks():
            if (wrong := np.flatnonzero((chunk < 0) | (chunk >= ids))).size:
                raise DataError(
                    f"'{place.path}' holds the id {int(chunk[wrong[0]]):,} at token {done + int(wrong[0]):,}, and the "
                    f"tokenizer has {ids:,} ids: give data.tokenizer the one that wrote it, or the right data.dtype"
                )
            done += len(chunk)
            joined = np.concatenate([rest, chunk])
            if separator is None:
                whole = len(joined) // document_tokens * document_tokens
                pieces = [*joined[:whole].reshape(-1, document_tokens), joined[whole:]]
            else:
                # One memory-bound look for all borders, then views.
                borders = np.flatnonzero(joined == separator)
                pieces = np.split(joined, borders)
                pieces[1:] = [piece[1:] for piece in pieces[1:]]
            *whole_ones, rest = pieces
            yield from (piece for piece in whole_ones if len(piece))
            if len(rest) > LONGEST_DOCUMENT:
                yield rest
                rest = np.empty(0, np.int64)
            rest = rest.copy()
        if len(rest):
            yield rest


def tokens_hash(ids_N: np.ndarray) -> int:
    """Return the hash of a document's ids, (N,): 8 bytes of BLAKE2b, whatever dtype they were stored in."""
    return int.from_bytes(hashlib.blake2b(ids_N.astype("<u4").tobytes(), digest_size=8).digest(), "big")
