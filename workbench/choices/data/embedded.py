"""English prose from documentation that is already on this machine."""

from __future__ import annotations

import hashlib
import itertools
import re
import string
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any, Literal

import numpy as np

from workbench.choices.choice import Problem, knob
from workbench.choices.data import harvest
from workbench.choices.data.cache import cached_documents
from workbench.choices.data.data import Data, Say, Sourced
from workbench.choices.data.documentation import CORE, core_packages, other_versions

SAY_SECONDS = 1.0
_LETTERS = re.compile(r"[^\W\d_]+")
_LETTERS_ALONE = bytes(code if chr(code) in string.ascii_lowercase else ord(" ") for code in range(256))
SHINGLE_WORDS = 8
SAMPLED_SHARE = 4
"""One shingle in so many is remembered (those whose checksum it divides): a quarter of the memory, the same verdicts
on paragraphs of usual length."""
FACTOR, PRIME = 1_000_003, (1 << 61) - 1
"""Base of the polynomial whose values tell shingles apart."""
TOGETHER = 256
"""Documents whose shingles are computed at once."""
REPEATED_SHARE = 0.4
"""A paragraph goes when more than this share of its shingles was seen before: copies of one docstring that differ in
a class's name and little else."""


class Embedded(Data):
    """Docstrings and topics of the standard library and installed packages: no download, no licences to clear."""

    kind: Literal["embedded"] = "embedded"
    packages: tuple[str, ...] = knob(
        (CORE,), "installed packages to read ('core': a fixed list; 'python': the standard library); empty: all"
    )

    def documents(self) -> Iterator[str]:
        """Yield cleaned docstrings and documents without repetitions, a paragraph per line; harvested once,
        then cached.

        Raises:
            DataError: a package that is not installed, a cache that cannot be written.
        """
        return (text for _, text in self.sourced_documents())

    def sourced_documents(self) -> Iterator[Sourced]:
        """Yield the documents with package and file that each was found in."""
        return cached_documents("documentation", self.sources(), lambda: self._harvest(_quiet), _quiet)

    def collect(self, say: Say) -> None:
        """Harvest the documentation, in one process per core, unless that was done before."""
        documents = cached_documents("documentation", self.sources(), lambda: self._harvest(say), say)
        if self.packages == (CORE,):
            say(self._compared(documents))

    def notices(self) -> Iterator[Problem]:
        """Yield the tokenizer's, and versions that are not those of the fixed list."""
        yield from super().notices()
        if CORE in self.packages and (others := other_versions()):
            more = f" and {len(others) - 3} more" if len(others) > 3 else ""
            yield Problem(
                "data.packages",
                f"the text differs from the committed fingerprint: {'; '.join(others[:3])}{more}; its scores do not "
                "compare with those of other machines",
            )

    def _compared(self, documents: Iterator[Sourced]) -> str:
        """Say if the text is that of the fixed list."""
        found, known = text_hash(documents), core_packages()["text"]
        if found == known:
            return f"the text is the one that 'core' has everywhere ({found[:12]})"
        return (
            f"the text differs from the committed fingerprint: {found[:12]}, not {known[:12]}; its scores do not "
            "compare with those of other machines"
        )

    def sources(self) -> dict[str, Any]:
        """Return versions, numbers of files and digests of the packages; reads only what pip recorded of them."""
        from workbench.choices.data.documentation import installed_packages

        packages = {p.name: [p.version, len(p.files), p.digest[:12]] for p in installed_packages(self.packages)}
        return {"harvest": harvest.VERSION, "packages": packages}

    def _harvest(self, say: Say) -> Iterator[Sourced]:
        from workbench.choices.data.documentation import installed_packages
        from workbench.choices.data.workers import harvest_files

        files = [
            ((package.name, module), path)
            for package in installed_packages(self.packages)
            for module, path in zip(package.modules(), package.files, strict=True)
        ]
        # Closed here, not when the collector comes by: workers must not outlive an error.
        with closing(harvest_files([path for _, path in files])) as found:
            of_files = zip(files, _counted(found, len(files), say), strict=True)
            documents = ((names, document) for (names, _), of_file in of_files for document in of_file)
            yield from without_repetitions(documents)


def _counted(found: Iterator[list[list[str]]], total: int, say: Say) -> Iterator[list[list[str]]]:
    """Yield the documents of every file, with a line at the first and after each tenth, at most one a second."""
    due, tenths = time.monotonic(), -1
    for number, documents in enumerate(found, start=1):
        # Tenths: most who are told write a line for each, into logs and notebooks that somebody reads.
        if 10 * number // total > tenths and (now := time.monotonic()) >= due:
            say(f"reading documentation installed here, once: file {number:,} of {total:,}")
            due, tenths = now + SAY_SECONDS, 10 * number // total
        yield documents


def without_repetitions(documents: Iterable[tuple[tuple[str, ...], list[str]]]) -> Iterator[Sourced]:
    """Join paragraphs to documents, leaving out every paragraph that was seen before, wholly or for the most part.

    Generated documentation repeats itself: the same sentences stand in every model, every method, every overload.
    What is left of a document must still be one (``harvest.DOCUMENT_WORDS``).

    Returns:
        the documents that remain, a paragraph per line.
    """
    whole: set[int] = set()
    shingles: set[int] = set()
    for (sources, document), looked_at in _fingerprints(documents):
        kept = []
        for paragraph, (key, sampled) in zip(document, looked_at, strict=True):
            repeated = sum(map(shingles.__contains__, sampled)) > REPEATED_SHARE * len(sampled)
            if key not in whole and not repeated:
                kept.append(paragraph)
            # Also of what was left out: its third copy is a repetition, too.
            whole.add(key)
            shingles.update(sampled)
        if sum(len(paragraph.split()) for paragraph in kept) >= harvest.DOCUMENT_WORDS:
            yield sources, "\n".join(kept)


def _fingerprints(
    documents: Iterable[tuple[tuple[str, ...], list[str]]],
) -> Iterator[tuple[tuple[tuple[str, ...], list[str]], list[tuple[int, list[int]]]]]:
    """Yield each document with, for every paragraph, what tells it from others and :func:`sampled_shingles`."""
    checksums = _Checksums()
    remaining = iter(documents)
    while batch := list(itertools.islice(remaining, TOGETHER)):
        words = [_words(paragraph) for _, document in batch for paragraph in document]
        # Checksum and length: among hundreds of thousands of paragraphs a bare 32-bit checksum does collide.
        keys = [zlib.crc32(b" ".join(each)) | len(each) << 32 for each in words]
        found = zip(keys, sampled_shingles([list(map(checksums.__getitem__, each)) for each in words]), strict=True)
        for document in batch:
            yield document, list(itertools.islice(found, len(document[1])))


def _words(paragraph: str) -> list[bytes]:
    """Return runs of letters, in small ones."""
    lowered = paragraph.lower()
    if lowered.isascii():
        # As below, in a fifth of the time.
        return lowered.encode().translate(_LETTERS_ALONE).split()
    return [word.encode() for word in _LETTERS.findall(lowered)]


class _Checksums(dict[bytes, int]):
    """Return the hashes of words, each computed once."""

    def __missing__(self, word: bytes) -> int:
        self[word] = checksum = zlib.crc32(word)
        return checksum


def sampled_shingles(paragraphs: list[list[int]]) -> list[list[int]]:
    """Return, for each paragraph, the divisible ones among the values of its runs of eight words.

    Which ones depends on the words alone. A value is a polynomial of the words' checksums, modulo a prime.

    Args:
        paragraphs: the checksums of their words, below 2 to the 32nd.
    """
    ends = np.cumsum([len(each) for each in paragraphs])
    sums = np.fromiter(itertools.chain.from_iterable(paragraphs), np.uint64, ends[-1] if paragraphs else 0)
    runs = len(sums) - SHINGLE_WORDS + 1
    if runs <= 0:
        return [[] for _ in paragraphs]
    values = np.zeros(runs, np.uint64)
    for place in range(SHINGLE_WORDS):
        # Times the factor, 81 bits: those above the 61st have the weight of those below it, and come in from there.
        high, low = values >> np.uint64(31), values & np.uint64((1 << 31) - 1)
        high, low = high * np.uint64(FACTOR), low * np.uint64(FACTOR)
        values = ((high & np.uint64((1 << 30) - 1)) << np.uint64(31)) + (high >> np.uint64(30)) + low
        values += sums[place : place + runs]
        values = (values & np.uint64(PRIME)) + (values >> np.uint64(61))
    values[values >= PRIME] -= np.uint64(PRIME)
    # A run that goes on in the next paragraph is none.
    owners = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    inside = owners[:runs] == owners[SHINGLE_WORDS - 1 :]
    (places,) = np.nonzero(inside & (values % np.uint64(SAMPLED_SHARE) == 0))
    found, cuts = values[places].tolist(), np.searchsorted(places, ends).tolist()
    return [found[start:end] for start, end in itertools.pairwise([0, *cuts])]


def text_hash(documents: Iterable[Sourced]) -> str:
    """Return the SHA-256 of the texts in order, whatever names they have."""
    digest = hashlib.sha256()
    for _, text in documents:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


def _quiet(line: str) -> None:
    """Swallow what a caller without a channel cannot show."""
