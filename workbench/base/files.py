"""Files that are there whole or not at all, and the locks that files carry. Standard library only."""

from __future__ import annotations

import fcntl
import os
import secrets
from importlib import import_module
from pathlib import Path
from typing import TextIO

EVALUATION_VARIABLE = "WORKBENCH_EVAL"
"""Names the folder of benchmarks and evaluation sets; of tasks several folders, as in ``$PATH``."""
COMPRESSED = {".xz": "lzma", ".gz": "gzip", ".bz2": "bz2"}
"""Endings of compressed files, and the modules that open them."""


def open_text(path: Path) -> TextIO:
    """Open a UTF-8 file for reading, also a compressed one.

    Raises:
        OSError: it cannot be opened. Reading a damaged archive raises what its module does.
    """
    # Loaded where needed: whoever writes files has no use for three of them.
    found: TextIO = import_module(COMPRESSED.get(path.suffix, "io")).open(path, "rt", encoding="utf-8")
    return found


def write_bytes(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace a file whole or not at all: written aside, synced, renamed.

    Args:
        durable: fsync before the rename; leave out only for what is written again within seconds.

    Raises:
        OSError: the disk is full or the folder is gone; the old file is untouched and nothing is left aside.
    """
    # Beside the file, since a rename is atomic only within one file system; under a name of its own, since two
    # processes may write the same file at once.
    aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        # Created anew with the usual permissions: what mkstemp makes is for the owner alone, but colleagues watch runs.
        with aside.open("xb") as file:
            file.write(data)
            file.flush()
            if durable:
                # The rename may reach the disk before the data: after a power cut the new name would stand on an
                # empty file.
                os.fsync(file.fileno())
        aside.replace(path)
    # Not only Exception: a Ctrl-C in here must not leave the file aside behind.
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def usual_permissions(folder: Path) -> None:
    """Give the files of a new folder the permissions that the folder has: those the user's umask grants.

    safetensors writes through a temporary file that only its owner may read, but colleagues watch runs and load models.

    Raises:
        OSError: a file is gone, or is somebody else's.
    """
    for path in folder.iterdir():
        if path.is_file():
            path.chmod(folder.stat().st_mode & 0o666)


def sync_folder(folder: Path) -> None:
    """Wait until the folder's entries (names, renames) are on the disk, where the system can open folders."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def file_locked(path: Path) -> bool:
    """Return True if somebody holds the lock of a file; False where there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return locked(descriptor)
    finally:
        os.close(descriptor)


def locked(descriptor: int) -> bool:
    """Return True if somebody holds the lock of an open file."""
    try:
        # Shared, so that two who look never take each other for a holder.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    # By name: a process forked meanwhile has a copy of the descriptor, and with it the lock.
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False
