"""From token files to token stores: framed documents, a split, and the bytes of text that held-out tokens stand for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.choices.data.cutting import batched
from workbench.choices.data.data import Say
from workbench.choices.data.encoding import token_bytes
from workbench.choices.data.repeats import RUN_WORDS, looked_up, mixed, rolled
from workbench.choices.data.store import SPLITS, StoreWriter
from workbench.choices.data.token_file import TokenFile
from workbench.choices.data.token_reading import tokens_hash
from workbench.choices.data.tokens import Vocabulary

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Shape legend: N tokens of a document or of a batch of them, G runs of 13 tokens.

BATCH_TOKENS = 1 << 19
RULE = "whole documents, by the first 8 bytes of BLAKE2b of their ids"


def build_from_tokens(
    data: TokenFile, folder: Path, tokenizer: Tokenizer, vocabulary: Vocabulary, added: list[str], say: Say
) -> tuple[np.ndarray, dict[str, Any]]:
    """Write both splits of token files into a cache entry.

    Args:
        tokenizer: completed; the ids of ``added`` special tokens stand in no file.

    Returns:
        occurrences of each id in the training split, int64 (V,), and what the manifest says of split and sizes.

    Raises:
        DataError: a file that is damaged, or of another vocabulary.
    """
    say("reading the token files and framing their documents, once")
    read = data.reader(tokenizer, added)
    own = None if not data.heldout_paths else {tokens_hash(ids_N) for ids_N in read(heldout=True)}
    bound = data.heldout_fraction * 2.0**64

    def side(*, heldout: bool) -> Iterator[np.ndarray]:
        if own is None:
            # Copies: a view of the few that are held out would keep the whole chunk in memory.
            return (ids_N.copy() for ids_N in read(heldout=False) if (tokens_hash(ids_N) < bound) == heldout)
        if heldout:
            return read(heldout=True)
        return (ids_N for ids_N in read(heldout=False) if tokens_hash(ids_N) not in own)

    runs, found = _Runs(side(heldout=True)), _Bytes(tokenizer)
    with ExitStack() as stack:
        train, heldout = (stack.enter_context(StoreWriter(folder, split, vocabulary.size)) for split in SPLITS)
        for batch in batched(runs.watched(side(heldout=False)), BATCH_TOKENS, size=len):
            train.add(*_framed(batch, vocabulary))
        for batch in batched(side(heldout=True), BATCH_TOKENS, size=len):
            ids_N, lengths_D = _framed(batch, vocabulary)
            heldout.add(ids_N, lengths_D, np.concatenate([found.of(each) for each in batch]))
    say(
        f"{train.tokens:,} training tokens in {train.documents:,} documents, {heldout.tokens:,} held-out tokens in "
        f"{heldout.documents:,}; {runs.share:.2%} of the held-out text's runs of {RUN_WORDS} tokens stand in the "
        "training text, too"
    )
    return train.counts_V, {
        "dtype": train.dtype.str,
        "split": {"grain": "heldout_paths" if own is not None else RULE, "sources": [], "separator": read.separator},
        "heldout_overlap": runs.share,
        "heldout_overlap_before": runs.share,
        **{s: {"documents": w.documents, "tokens": w.tokens} for s, w in zip(SPLITS, (train, heldout), strict=True)},
    }


def _framed(batch: list[np.ndarray], vocabulary: Vocabulary) -> tuple[np.ndarray, np.ndarray]:
    """Return documents as ``[cls] tokens [sep]`` back to back, uint32 (N,), and the length of each."""
    lengths_D = np.array([len(each) for each in batch]) + 2
    ends_D = np.cumsum(lengths_D)
    framed_N = np.empty(ends_D[-1], np.uint32)
    inside_N = np.ones(len(framed_N), bool)
    inside_N[ends_D - lengths_D] = inside_N[ends_D - 1] = False
    framed_N[inside_N] = np.concatenate(batch)
    framed_N[ends_D - lengths_D], framed_N[ends_D - 1] = vocabulary.cls, vocabulary.sep
    return framed_N, lengths_D


class _Bytes:
    """Finds the bytes of text that each token of a document stands for."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._weight_V: np.ndarray | None = None

    def of(self, ids_N: np.ndarray) -> np.ndarray:
        """Return the bytes of a framed document's tokens, int64 (N + 2,); they sum to those of its text.

        Exact where the tokenizer makes the same tokens of the text again, else shared out by the length of each piece.
        """
        ids = ids_N.tolist()
        text = self._tokenizer.decode(ids, skip_special_tokens=False)
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        if encoding.ids == ids:
            sizes = token_bytes(text, encoding)
            return np.concatenate([[0], sizes[:-1], [0]]) + np.pad([sizes[-1]], (len(ids), 1))
        weights = self._weights()[ids_N]
        total = len(text.encode("utf-8", "surrogatepass"))
        ends = np.rint(np.cumsum(weights) / weights.sum() * total).astype(np.int64)
        return np.concatenate([[0], np.diff(ends, prepend=0), [0]])

    def _weights(self) -> np.ndarray:
        """Return the bytes of each piece alone, at least 1, int64 (V,)."""
        if self._weight_V is None:
            count = max(self._tokenizer.get_vocab(with_added_tokens=True).values()) + 1
            pieces = self._tokenizer.decode_batch([[each] for each in range(count)], skip_special_tokens=False)
            self._weight_V = np.array([max(1, len(piece.encode("utf-8", "surrogatepass"))) for piece in pieces])
        return self._weight_V


class _Runs:
    """Find the runs of 13 tokens of the held-out documents that also stand in the training text."""

    def __init__(self, heldout: Iterable[np.ndarray]) -> None:
        found = [np.unique(_runs(batch)) for batch in batched(heldout, BATCH_TOKENS, size=len)]
        self._runs = np.unique(np.concatenate(found)) if found else np.empty(0, np.uint64)
        self._seen = np.zeros(len(self._runs), bool)

    def watched(self, training: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """Yield the training documents; their runs are looked up on the way."""
        for batch in batched(training, BATCH_TOKENS, size=len):
            if len(self._runs):
                self._seen[looked_up(_runs(batch), self._runs)[1]] = True
            yield from batch

    @property
    def share(self) -> float:
        """Share of the held-out text's different runs that were seen in training."""
        return float(self._seen.mean()) if len(self._seen) else 0.0


def _runs(batch: list[np.ndarray]) -> np.ndarray:
    """Return the hash of every run of 13 tokens within one document, uint64 (G,)."""
    ids_N = mixed(np.concatenate(batch).astype(np.uint64) + np.uint64(1))
    document_N = np.repeat(np.arange(len(batch)), [len(each) for each in batch])
    return rolled(ids_N, document_N)[0]
