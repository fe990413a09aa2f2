"""The end of a run's log, however long the log is, or a line of it."""

from __future__ import annotations

from pathlib import Path

MOST_BYTES_PER_LINE = 1 << 12
"""On average; more is not read: a progress bar may fill gigabytes without a line end."""


def tail(path: Path, lines: int, start: int = 0) -> str:
    """The last ``lines`` lines of a file, or of what follows its byte ``start``; empty when there is no file."""
    try:
        with path.open("rb") as file:
            file.seek(max(start, file.seek(0, 2) - lines * MOST_BYTES_PER_LINE))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:]) if lines > 0 else ""
