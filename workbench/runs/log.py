"""The end of a run's log, however long the log is."""

from __future__ import annotations

from pathlib import Path

_READ_BLOCK_BYTES = 1 << 16


def tail(path: Path, lines: int) -> str:
    """The last lines of a file; empty when there is none. Blocks are read from its end."""
    try:
        with path.open("rb") as file:
            position, block = file.seek(0, 2), b""
            while position > 0 and block.count(b"\n") <= lines:
                step = min(_READ_BLOCK_BYTES, position)
                position -= step
                file.seek(position)
                block = file.read(step) + block
    except OSError:
        return ""
    return "\n".join(block.decode("utf-8", "replace").splitlines()[-lines:]) if lines > 0 else ""
