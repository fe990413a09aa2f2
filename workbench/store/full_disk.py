"""A disk that is full or can only be read: how errors say so, and the space in which a last state is written."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Any

from workbench.store.folder import RunFolder, json_bytes, write_json

DISK_FULL = "the disk is full"
"""With this begins why a run failed for want of space: it may be resumed once there is some."""
RESERVE_BYTES = 1 << 16
_FULL = (errno.ENOSPC, errno.EDQUOT)
# A file system that was mounted anew, and a folder whose permissions were changed.
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


def fill_reserve(folder: RunFolder) -> None:
    """Set aside the space in which a state can be written on a full disk (:data:`RESERVE_BYTES`).

    Raises:
        OSError: the disk is too full for that already.
    """
    # Random: a file system that compresses would reserve nothing.
    folder.reserve.write_bytes(os.urandom(RESERVE_BYTES))


def disk_full(error: BaseException | None) -> bool:
    """Return True if an error, or what caused it, says that the disk or the user's share of it is full."""
    return _caused_by(error, _FULL)


def unwritable(error: BaseException | None) -> bool:
    """Return True if an error, or what caused it, says that nothing can be written for now: full, or read-only."""
    return _caused_by(error, _FULL + _READ_ONLY)


def _caused_by(error: BaseException | None, numbers: Sequence[int]) -> bool:
    while error is not None and not (isinstance(error, OSError) and error.errno in numbers):
        error = error.__cause__
    return error is not None


def write_into_reserve(folder: RunFolder, state: dict[str, Any]) -> None:
    """Replace the state without new space: overwrite the reserve in place, and keep the old state as the next one.

    Deleting the reserve to make room would not do: the telemetry that waits for space would take it first.
    """
    data, space = json_bytes(state), folder.reserve.stat().st_size
    if len(data) > space:
        # The beginning of an error says what to do; the rest stands in worker.log, or nowhere on a full disk.
        data = json_bytes({key: value[:800] if isinstance(value, str) else value for key, value in state.items()})
    # Padded, so that the space stays with the file when it becomes the reserve again.
    padding = b" " * (space - len(data))
    try:
        with folder.reserve.open("r+b") as file:
            file.write(data + padding)
            file.flush()
            os.fsync(file.fileno())
        kept = folder.path / f"{folder.reserve.name}.tmp"
        kept.unlink(missing_ok=True)
        os.link(folder.state, kept)
        folder.reserve.replace(folder.state)
        kept.replace(folder.reserve)
    except OSError:
        # A file system that copies on write needs new blocks even here, and some know no links.
        folder.reserve.unlink(missing_ok=True)
        write_json(folder.state, state)
