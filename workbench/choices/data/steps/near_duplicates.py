"""Removal of documents that are nearly the same as an earlier one: MinHash finds candidates, their words decide."""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from workbench.choices.choice import Problem, knob
from workbench.choices.data.cutting import batched
from workbench.choices.data.repeats import runs_of
from workbench.choices.data.steps.step import Document, Step, Verdict, kept, removed

# Shape legend: D documents, G shingles, P permutations, B bands, R rows of a band.

BATCH_CHARACTERS = 1 << 22
FOUND_SHARE = 0.99
"""Chance at least that a pair at the threshold becomes a candidate: it decides rows and bands."""
EARLIER = 4
"""Documents with an equal band are compared with the first so many of them: a thousand copies are no million pairs."""
MOST_SHINGLES = 4096
"""Longer documents are compared by a sample of their shingles, chosen by hash."""
_SEED = 17


class Shingles(NamedTuple):
    """Different shingles of one document.

    Attributes:
        hash_G: sorted, uint64. mask: only hashes without any of these bits are in it; 0 where all are.
    """

    hash_G: np.ndarray
    mask: int


class NearDuplicates(Step):
    """Keeps the first of documents whose sets of word runs (shingles) overlap by a threshold.

    J(a, b) = |A and B| / |A or B| of their shingles. Signatures of P minima are cut into bands; documents with an equal
    band are candidates, and one is removed if J with an earlier kept one, counted on the shingles themselves, reaches
    ``threshold``.

    Source: Broder 1997 (shingles, minima); Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.4
    (bands). Lee et al. 2022 (arXiv 2107.06499) confirm candidates by edit distance instead.
    """

    kind: Literal["near_duplicates"] = "near_duplicates"
    threshold: float = knob(0.8, "least share of common shingles of near duplicates", ge=0.05, le=1)
    shingle_words: int = knob(5, "words in a shingle", unit="words", ge=1, le=64)
    permutations: int = knob(128, "minima in a signature; more of them leave fewer candidates", ge=16, le=1024)

    def judge(self, documents: Iterable[Document]) -> Iterator[Verdict]:
        """Yield the verdicts after two passes: signatures of all, then shingles of the candidates.

        Memory holds 8 bytes a band and document (168 at the defaults), and the shingles of candidates that are kept.
        """
        earlier = self._candidates(documents)
        first = {number for numbers in earlier.values() for number in numbers}
        known: dict[int, Shingles] = {}
        for batch in batched(documents, BATCH_CHARACTERS, size=lambda document: len(document.text)):
            compared = [document for document in batch if document.number in earlier or document.number in first]
            own = {d.number: each for d, each in zip(compared, self._shingles(compared), strict=True)}
            for document in batch:
                number, verdict = document.number, kept(document)
                for other in earlier.get(number, ()):
                    if other in known and (share := jaccard(own[number], known[other])) >= self.threshold:
                        verdict = removed(document, "near duplicate", f"{share:.0%} like document {other}")
                        break
                if not verdict.removed and number in first:
                    known[number] = own[number]
                yield verdict

    def problems_here(self) -> Iterator[Problem]:
        """Yield the package that is not installed."""
        if importlib.util.find_spec("rensa") is None:
            yield Problem("kind", "needs the package rensa: pip install 'workbench[data]'")

    def _candidates(self, documents: Iterable[Document]) -> dict[int, list[int]]:
        """Return the earlier documents that share a band, by number of the later one."""
        from rensa import RMinHash

        rows = rows_of_bands(self.threshold, self.permutations)
        bands = self.permutations // rows
        odd_R = np.random.default_rng(_SEED).integers(0, 1 << 63, rows, np.uint64) * np.uint64(2) + np.uint64(1)
        numbers, hashes = [np.empty(0, np.int64)], [np.empty((0, bands), np.uint64)]
        for batch in batched(documents, BATCH_CHARACTERS, size=lambda document: len(document.text)):
            runs = runs_of([document.text for document in batch], self.shingle_words)
            counts_D = np.bincount(runs.text_G, minlength=len(batch))
            # A document that has no shingle is like no other.
            with_any_D = np.flatnonzero(counts_D)
            ends_D1 = np.concatenate([[0], counts_D[with_any_D].cumsum()]).astype(np.uint64)
            if len(with_any_D):
                found = RMinHash.digest_matrix_from_flat_token_hashes(runs.hash_G, ends_D1, rows * bands, _SEED)
                minima_DBR = np.array(found.to_rows(), np.uint64).reshape(-1, bands, rows)
                hashes.append((minima_DBR * odd_R).sum(-1, dtype=np.uint64))
                numbers.append(np.array([document.number for document in batch])[with_any_D])
        return _pairs(np.concatenate(numbers), np.concatenate(hashes))

    def _shingles(self, documents: Sequence[Document]) -> Iterator[Shingles]:
        runs = runs_of([document.text for document in documents], self.shingle_words)
        ends = np.searchsorted(runs.text_G, np.arange(len(documents) + 1))
        for begin, end in pairwise(ends):
            hash_G, mask = np.unique(runs.hash_G[begin:end]), 0
            while len(hash_G) > MOST_SHINGLES:
                mask = 2 * mask + 1
                hash_G = hash_G[hash_G & np.uint64(mask) == 0]
            yield Shingles(hash_G, mask)


def rows_of_bands(threshold: float, permutations: int) -> int:
    """Return how many minima make a band, R: as many as find pairs at the threshold with :data:`FOUND_SHARE`.

    A pair with overlap J has an equal band with the chance 1 - (1 - J^R)^B, B = P // R.

    Example:
        >>> rows_of_bands(0.8, 128)
        6
    """
    enough = [
        rows
        for rows in range(1, permutations + 1)
        if 1 - (1 - threshold**rows) ** (permutations // rows) >= FOUND_SHARE
    ]
    return max(enough, default=1)


def jaccard(a: Shingles, b: Shingles) -> float:
    """Return |A and B| / |A or B| of two documents; of a sample where one of them is long.

    Example:
        >>> a, b = (Shingles(np.array(each, np.uint64), 0) for each in ([1, 2, 3], [2, 3, 4]))
        >>> jaccard(a, b)
        0.5
    """
    mask = np.uint64(a.mask | b.mask)
    one, other = (each.hash_G[each.hash_G & mask == 0] for each in (a, b))
    both = len(np.intersect1d(one, other, assume_unique=True))
    return both / max(1, len(one) + len(other) - both)


def _pairs(numbers_D: np.ndarray, hash_DB: np.ndarray) -> dict[int, list[int]]:
    """Return, by later document, the earlier ones of the first four that share a band with it."""
    found = np.empty(0, np.uint64)
    for hash_D in hash_DB.T:
        # Stable: documents with an equal band stay in their order.
        order_D = np.argsort(hash_D, kind="stable")
        same_D = hash_D[order_D]
        first_D = np.searchsorted(same_D, same_D)
        for place in range(EARLIER):
            later = np.flatnonzero(first_D + place < np.arange(len(order_D)))
            a, b = order_D[first_D[later] + place], order_D[later]
            found = np.union1d(found, b.astype(np.uint64) << np.uint64(32) | a.astype(np.uint64))
    earlier: dict[int, list[int]] = defaultdict(list)
    later_D, earlier_D = found >> np.uint64(32), found & np.uint64((1 << 32) - 1)
    for b, a in zip(numbers_D[later_D].tolist(), numbers_D[earlier_D].tolist(), strict=True):
        earlier[b].append(a)
    return dict(earlier)
