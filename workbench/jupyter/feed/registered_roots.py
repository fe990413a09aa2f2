"""Runs folders that a server may show: a kernel of the same user has written them down. Standard library only.

A page must never name a path, and a server cannot guess in which folder a notebook keeps its runs. So the kernel,
which may read that folder anyway, leaves a note in Jupyter's runtime folder; the page is told the note's key.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path

from workbench.base.files import write_bytes

NOTES = "workbench"
"""Name of the folder of notes within Jupyter's runtime folder."""
_KEY = re.compile(r"[0-9a-f]{32}")
# The longest path that Linux takes; anything longer is none of our notes.
_NOTE_BYTES = 4096


def register(notes: Path, runs_dir: Path) -> str:
    """Write down a runs folder; returns its key.

    Args:
        notes: folder of the notes, private to the user; made when missing.

    Raises:
        OSError: the note cannot be written.
    """
    key = key_of(runs_dir)
    notes.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Runs are watched far more often than new folders appear, and a note never changes.
    if registered(notes, key) != runs_dir:
        # Bytes, since the name of a folder need not be Unicode.
        write_bytes(notes / key, os.fsencode(runs_dir))
        (notes / key).chmod(0o600)
    return key


def registered(notes: Path, key: str) -> Path | None:
    """Return the runs folder of a key, or None when there is no note of it that only this user can have written."""
    if _KEY.fullmatch(key) is None:
        return None
    try:
        if not _private(os.lstat(notes)):
            return None
        descriptor = os.open(notes / key, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not (stat.S_ISREG(found.st_mode) and _private(found)):
                return None
            path = os.fsdecode(file.read(_NOTE_BYTES))
    except OSError:
        return None
    # A key stands for one path for ever: a note that was renamed or edited names another and is none.
    return Path(path) if os.path.isabs(path) and key_of(Path(path)) == key else None


def all_registered(notes: Path) -> dict[str, Path]:
    """Return every runs folder that was written down, by its key; some may be gone."""
    try:
        keys = sorted(entry.name for entry in os.scandir(notes))
    except OSError:
        return {}
    return {key: path for key in keys if (path := registered(notes, key)) is not None}


def key_of(runs_dir: Path) -> str:
    """Return the key of a runs folder: a hash of its path, 32 hexadecimal digits."""
    return hashlib.sha256(os.fsencode(runs_dir)).hexdigest()[:32]


def _private(found: os.stat_result) -> bool:
    # Others who could write here could have any folder of this user served.
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
