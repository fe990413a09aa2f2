"""Lines of files as bytes, decompressed within a bound."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from workbench.base.errors import DataError

COMPRESSED_ENDINGS = (".gz", ".xz", ".zst")
EXTRA = "install it with: pip install 'workbench[files]'"
BLOCK_BYTES = 1 << 20
_ZSTANDARD_BYTES = 1 << 13
"""Compressed bytes that are expanded at once: 4 bytes of Zstandard can stand for 128 KiB."""
EXPANSION = 100
"""Times its size that an archive holds at most; the texts of ``docs/results`` expand two to six times."""
ALWAYS_BYTES = 64 << 20
"""An archive may hold this much in any case: a short text that repeats itself is no danger."""


def raw_lines(path: Path, expansion: int = EXPANSION) -> Iterator[bytes]:
    """Yield the lines of a file as bytes, decompressed; every way in which an archive can be damaged is one error.

    Args:
        expansion: times its size that an archive may hold at most, beyond 64 MiB.

    Raises:
        DataError: unreadable, damaged, or larger than that.
    """
    ending = path.suffix.lower()
    try:
        if ending not in COMPRESSED_ENDINGS:
            with path.open("rb", BLOCK_BYTES) as file:
                yield from file
            return
        with path.open("rb") as file:
            yield from _lines(_bounded(path, _blocks(path, file), expansion))
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise DataError(f"'{path}' is a damaged archive: {error}; fetch or write it again") from None
    except OSError as error:
        # gzip reports a damaged header or checksum as an OSError without a number.
        what = "cannot be read" if error.errno else "is a damaged archive"
        raise DataError(f"'{path}' {what}: {error}") from None


def _blocks(path: Path, file: BinaryIO) -> Iterator[bytes]:
    if path.suffix.lower() == ".zst":
        yield from _zstandard_blocks(path, file)
    else:
        with gzip.open(file) if path.suffix.lower() == ".gz" else lzma.open(file) as archive:
            while block := archive.read(BLOCK_BYTES):
                yield block


def _bounded(path: Path, blocks: Iterator[bytes], expansion: int) -> Iterator[bytes]:
    # Before the lines: a bomb may have none.
    size = path.stat().st_size
    left = max(ALWAYS_BYTES, expansion * size)
    for block in blocks:
        left -= len(block)
        if left < 0:
            raise DataError(
                f"'{path}' of {size:,} bytes expands to more than {expansion} times its size and 64 MiB: it is "
                "damaged, or made to fill a disk; if it is meant to, raise data.expansion"
            )
        yield block


def _lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    open_line: list[bytes] = []
    for block in blocks:
        *ended, rest = block.split(b"\n")
        for line in ended:
            yield b"".join([*open_line, line, b"\n"])
            open_line = []
        open_line.append(rest)
    if rest := b"".join(open_line):
        yield rest


def _zstandard_blocks(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """Yield what a .zst file holds; unlike the library's own reader, a file that ends too early is an error."""
    try:
        import zstandard
    except ImportError:
        raise DataError(f"'{path}' needs the package zstandard; {EXTRA}") from None
    frame = zstandard.ZstdDecompressor().decompressobj()
    try:
        while block := file.read(_ZSTANDARD_BYTES):
            while block:
                if frame.eof:  # another frame follows
                    frame = zstandard.ZstdDecompressor().decompressobj()
                yield frame.decompress(block)
                block = frame.unused_data
    except zstandard.ZstdError as error:
        raise EOFError(str(error)) from None
    if not frame.eof:
        raise EOFError("it ends in the middle of a frame")
