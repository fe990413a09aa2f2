"""English prose from documentation that is already on this machine."""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any, Literal

from workbench.choices.choice import knob
from workbench.choices.data import harvest
from workbench.choices.data.data import Data, Say, Sourced
from workbench.choices.data.document_cache import cached_documents

SAY_SECONDS = 1.0
_LETTERS = re.compile(r"[^\W\d_]+")
SHINGLE_WORDS = 8
SAMPLED_SHARE = 4
"""One shingle in so many is remembered (those whose checksum it divides): a quarter of the memory, the same verdicts
on paragraphs of usual length."""
REPEATED_SHARE = 0.4
"""A paragraph goes when more than this share of its shingles was seen before: copies of one docstring that differ in
a class's name and little else."""


class Embedded(Data):
    """Docstrings and topics of the standard library and installed packages: no download, no licences to clear."""

    kind: Literal["embedded"] = "embedded"
    packages: tuple[str, ...] = knob((), "installed packages to read ('python': the standard library); empty: all")

    def documents(self) -> Iterator[str]:
        """Cleaned docstrings and documents without repetitions, a paragraph per line; harvested once, then cached.

        Raises:
            DataError: a package that is not installed, a cache that cannot be written.
        """
        return (text for _, text in self.sourced_documents())

    def sourced_documents(self) -> Iterator[Sourced]:
        """The documents with package and file that each was found in."""
        return cached_documents("documentation", self.sources(), lambda: self._harvest(_quiet), _quiet)

    def collect(self, say: Say) -> None:
        """Harvest the documentation, in one process per core, unless that was done before."""
        cached_documents("documentation", self.sources(), lambda: self._harvest(say), say)

    def sources(self) -> dict[str, Any]:
        """Versions, numbers of files and digests of the packages; reads only what pip recorded of them."""
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
    """The documents of every file, with a line at the first and after each tenth, at most one a second."""
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
    for sources, document in documents:
        kept = []
        for paragraph in document:
            words = _LETTERS.findall(paragraph.lower())
            # Checksum and length: among hundreds of thousands of paragraphs a bare 32-bit checksum does collide.
            key = zlib.crc32(" ".join(words).encode()) | len(words) << 32
            sampled = _sampled_shingles(words)
            repeated = sum(shingle in shingles for shingle in sampled) > REPEATED_SHARE * len(sampled)
            if key not in whole and not repeated:
                kept.append(paragraph)
            # Also of what was left out: its third copy is a repetition, too.
            whole.add(key)
            shingles.update(sampled)
        if sum(len(paragraph.split()) for paragraph in kept) >= harvest.DOCUMENT_WORDS:
            yield sources, "\n".join(kept)


def _sampled_shingles(words: list[str]) -> list[int]:
    """Checksums of the runs of eight words whose checksum is divisible; which ones depends on the words alone."""
    sums = [zlib.crc32(word.encode()) for word in words]
    # A running polynomial of the words' checksums: one multiplication per word, not one string per shingle.
    factor, modulus = 1_000_003, (1 << 61) - 1
    leave = pow(factor, SHINGLE_WORDS, modulus)
    value, found = 0, []
    for index, checksum in enumerate(sums):
        value = (value * factor + checksum) % modulus
        if index >= SHINGLE_WORDS:
            value = (value - sums[index - SHINGLE_WORDS] * leave) % modulus
        if index >= SHINGLE_WORDS - 1 and value % SAMPLED_SHARE == 0:
            found.append(value)
    return found


def _quiet(line: str) -> None:
    """Swallow what a caller without a channel cannot show."""
