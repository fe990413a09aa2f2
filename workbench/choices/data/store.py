"""Token stores on disk: per split a flat file of ids (uint16 or uint32) and the int64 offsets of its documents."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import numpy as np

from workbench.base.errors import DataError
from workbench.choices.data.tokens import TokenStore

# Shape legend: N tokens, D documents.

SPLITS = ("train", "heldout")


class StoreWriter:
    """Writes one split, document by document; memory stays bounded by what one call hands over.

    ``counts_V`` holds how often each id was written, ``words`` and ``text_bytes`` what the texts had in all (words are
    runs between white space).

    Args:
        vocabulary_size: decides the width of an id, two bytes up to 65,536.
    """

    def __init__(self, folder: Path, split: str, vocabulary_size: int) -> None:
        # Little-endian everywhere: a cache may be copied to another machine.
        self.dtype = np.dtype("<u2" if vocabulary_size <= 1 << 16 else "<u4")
        self._ids = (folder / f"{split}.ids.bin").open("wb")
        self._offsets = (folder / f"{split}.offsets.bin").open("wb")
        self._offsets.write(np.zeros(1, "<i8").tobytes())
        self._bytes = (folder / f"{split}.bytes.bin").open("wb") if split == "heldout" else None
        self.counts_V = np.zeros(vocabulary_size, np.int64)
        self.tokens = self.documents = self.words = self.text_bytes = 0

    def add(self, ids_N: np.ndarray, lengths_D: np.ndarray, bytes_N: np.ndarray | None = None) -> None:
        """Append documents that lie back to back.

        Args:
            lengths_D: tokens of each; sums to N.
            bytes_N: of the held-out split, bytes of text that each token stands for.
        """
        ends_D = self.tokens + np.cumsum(lengths_D, dtype="<i8")
        assert len(ids_N) == int(lengths_D.sum()), (len(ids_N), int(lengths_D.sum()))
        self._ids.write(ids_N.astype(self.dtype, copy=False).tobytes())
        self._offsets.write(ends_D.tobytes())
        if self._bytes is not None:
            assert bytes_N is not None
            assert len(bytes_N) == len(ids_N), (len(bytes_N), len(ids_N))
            self._bytes.write(bytes_N.astype("<u4").tobytes())
        self.counts_V += np.bincount(ids_N, minlength=len(self.counts_V))
        self.tokens += len(ids_N)
        self.documents += len(lengths_D)

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ids.close()
        self._offsets.close()
        if self._bytes is not None:
            self._bytes.close()


def open_store(folder: Path, split: str, dtype: str, documents: int, tokens: int) -> TokenStore:
    """Map one split of a cache entry.

    Args:
        dtype: of the ids, ``<u2`` or ``<u4``.

    Raises:
        DataError: offsets and ids do not fit together.
    """
    # Offsets are read whole, 8 bytes a document; ids stay on the disk.
    offsets_D1 = np.fromfile(folder / f"{split}.offsets.bin", "<i8")
    ends_right = len(offsets_D1) == documents + 1 and offsets_D1[0] == 0 and offsets_D1[-1] == tokens
    # Strictly rising: even the shortest document holds [CLS], a token and [SEP].
    if not ends_right or bool((np.diff(offsets_D1) <= 0).any()):
        raise DataError(f"damaged token cache '{folder}': the offsets of {split} do not fit its tokens")
    bytes_N = _mapped(folder / f"{split}.bytes.bin", "<u4", tokens) if split == "heldout" else None
    return TokenStore(_mapped(folder / f"{split}.ids.bin", dtype, tokens), offsets_D1, bytes_N)


def _mapped(path: Path, dtype: str, count: int) -> np.ndarray:
    # An empty file cannot be mapped.
    return np.memmap(path, np.dtype(dtype), "r", shape=(count,)) if count else np.empty(0, np.dtype(dtype))
