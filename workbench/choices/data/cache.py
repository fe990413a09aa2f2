"""Cache entries: folders that are built once, whole or not at all, and checked whenever they are opened.

An entry holds ``manifest.json``, written last, which names the size and SHA-256 of every other file and carries a
checksum of itself. It is built in a sibling folder, synced and renamed; a file lock keeps a second process waiting.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from workbench.base.cache_folder import CACHE_VARIABLE, cache_folder
from workbench.base.errors import DataError
from workbench.base.files import sync_folder, write_bytes
from workbench.choices.data.data import Say, Sourced

MANIFEST = "manifest.json"
CHECKED_BYTES = 64 << 20
"""Files up to this size are hashed whenever they are opened (tens of milliseconds); of larger ones only the size is
compared, because hashing gigabytes at every start would cost more than it finds."""

DOCUMENTS_FILE = "documents.jsonl"
DOCUMENTS_FORMAT = 2
"""Part of the cache key: raise it whenever the file is written in another way."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

Build = Callable[[Path], dict[str, Any]]
"""Fills an empty folder and returns the JSON-able content of its manifest."""


def key_of(made_from: Any) -> str:
    """Return twenty hexadecimal digits (10 bytes of SHA-256) of what an entry is made from (anything JSON-able)."""
    return _digest(made_from)[:20]


def cache_entry(area: str, key: str, build: Build, say: Say) -> tuple[Path, dict[str, Any]]:
    """Return the folder and manifest of an entry, built by this process when nobody has built it yet.

    A damaged entry is reported through ``say`` and built anew. Of several processes one builds and the others wait.

    Raises:
        DataError: the cache cannot be written (full disk, no permission), or ``build`` raised it.
    """
    from filelock import FileLock, Timeout

    folder = cache_folder() / area / key
    content = _usable(folder, say)
    if content is not None:
        return folder, content
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.with_name(key + ".lock"))
        try:
            # Without waiting at first, so that a wait can be announced.
            lock.acquire(timeout=0)
        except Timeout:
            say("another process is preparing the same data; waiting for it")
            lock.acquire()
        try:
            # Whoever held the lock before may have built it meanwhile.
            content = _usable(folder, lambda line: None)
            return folder, _build(folder, build) if content is None else content
        finally:
            lock.release()
    except OSError as error:
        raise DataError(cannot_write(folder, error)) from error


def _usable(folder: Path, say: Say) -> dict[str, Any] | None:
    try:
        return read_manifest(folder)
    except DataError as error:
        say(f"{error}; it is built again")
        return None


def _build(folder: Path, build: Build) -> dict[str, Any]:
    """Build aside and rename into place; a damaged entry that stands there is removed just before."""
    # We hold the lock: what lies here was left by a process that was killed while it built.
    for left_over in folder.parent.glob(f"{folder.name}.*.tmp"):
        shutil.rmtree(left_over, ignore_errors=True)
    aside = Path(tempfile.mkdtemp(prefix=folder.name + ".", suffix=".tmp", dir=folder.parent))
    try:
        content = build(aside)
        write_manifest(aside, content)
        if folder.exists():
            shutil.rmtree(folder)
        # From this rename on the entry exists. A kill before it leaves a .tmp folder for the next builder to remove.
        aside.rename(folder)
        sync_folder(folder.parent)
    # Ctrl-C as well: gigabytes must not stay in a folder that nobody looks into.
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    # Read back, not handed on from memory: the first user gets what every later one will.
    return read_manifest(folder) or {}


def cannot_write(folder: Path, error: OSError) -> str:
    """Return why a folder of the cache could not be written, and the way out."""
    way_out = f"free some space or set {CACHE_VARIABLE} to a folder on another disk"
    if error.errno in _FULL:
        return f"disk full while writing the cache '{folder}' ({error.strerror}); nothing was left behind; {way_out}"
    return f"the cache '{folder}' cannot be written: {error}; set {CACHE_VARIABLE} to a folder you may write to"


def file_record(path: Path) -> dict[str, Any]:
    """Return ``{"bytes", "sha256"}`` of a file."""
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def write_manifest(folder: Path, content: dict[str, Any]) -> None:
    """Finish a cache entry: record its files (bytes, SHA-256), sync them, write the manifest and sync that.

    Args:
        content: JSON-able; gains the key ``files``.
    """
    # Files before the manifest: after a power cut it must not vouch for pages that were never written.
    content = {**content, "files": {path.name: file_record(path) for path in sorted(folder.iterdir())}}
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    write_bytes(folder / MANIFEST, json.dumps({"sha256": _digest(content), "content": content}, indent=1).encode())
    sync_folder(folder)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of a cache entry whose files have all their bytes; None when there is no entry.

    Raises:
        DataError: the entry is damaged; the message says what is wrong with which file.
    """
    if not folder.is_dir():
        return None
    damaged = f"damaged cache entry '{folder}': "
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        content, digest = manifest["content"], manifest["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{damaged}{MANIFEST} cannot be read ({type(error).__name__}: {error})") from None
    if _digest(content) != digest:
        raise DataError(f"{damaged}{MANIFEST} does not match its checksum")
    for name, record in content["files"].items():
        path = folder / name
        found = path.stat().st_size if path.is_file() else None
        if found != record["bytes"]:
            state = "is missing" if found is None else f"has {found:,} bytes"
            raise DataError(f"{damaged}{name} {state}, expected {record['bytes']:,}")
        if found <= CHECKED_BYTES and file_record(path)["sha256"] != record["sha256"]:
            raise DataError(f"{damaged}{name} does not match its checksum")
    return dict(content)


def _digest(content: Any) -> str:
    # Sorted: the key must not depend on the order in which a dictionary was filled.
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def cached_documents(area: str, made_from: Any, make: Callable[[], Iterator[Sourced]], say: Say) -> Iterator[Sourced]:
    """Return the documents and their sources that ``make`` gives, made once and then read from the cache.

    Args:
        made_from: everything that decides the documents (JSON-able): the key.

    Returns:
        the documents, streamed (memory holds the bytes of one), in the order in which ``make`` gave them, all of which
        are made before this returns.

    Raises:
        DataError: from ``make``, or the cache cannot be written.
    """

    def build(folder: Path) -> dict[str, Any]:
        count = words = 0
        with (folder / DOCUMENTS_FILE).open("w", encoding="utf-8") as file:
            for sources, text in make():
                # Escaped, so that half a surrogate pair from somebody's source cannot make the file unreadable.
                file.write(json.dumps([*sources, text]) + "\n")
                count += 1
                words += len(text.split())
        say(f"{count:,} documents with {words:,} words collected")
        return {"made_from": made_from, "documents": count, "words": words}

    folder, _ = cache_entry(area, key_of({"format": DOCUMENTS_FORMAT, "made_from": made_from}), build, say)
    return _read_documents(folder / DOCUMENTS_FILE)


def _read_documents(path: Path) -> Iterator[Sourced]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            *sources, text = json.loads(line)
            yield tuple(sources), text
