"""Reports of runs: pages that another process draws, since its libraries are not loaded here."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path, PosixPath
from urllib.parse import quote

from workbench.launchers.processes import run_module
from workbench.store.folder import RunFolder

REPORT = "workbench.plots.report"
"""Started, never imported: runs stand below it."""


class ReportPath(PosixPath):
    """The path of an HTML page, which a notebook shows as a link to it."""

    def _repr_html_(self) -> str:
        # Relative, since a page of Jupyter resolves links by the place of its notebook and opens no others.
        href = quote(os.path.relpath(self))
        return f'report: <a href="{escape(href)}" target="_blank" rel="noopener">{escape(str(self))}</a>'


def report(
    folders: Sequence[RunFolder],
    path: str | Path | None = None,
    places: Mapping[str, int] | None = None,
    seconds: float | None = None,
) -> ReportPath:
    """Write the report of runs: one HTML page with everything in it.

    Args:
        path: the file, replaced whole; None for ``report.html`` in the folder of a single run, and beside the folders
            of several under a name that is always the same for the same runs.
        places: by id of a run, where it is watched: it is drawn in that colour. The others take what is left.
        seconds: after which it is given up; None for as long as it takes.

    Raises:
        RunError: it could not be drawn or written.
    """
    file = (_place(folders) if path is None else Path(path).expanduser()).absolute()
    # Without a path of its own it may not bring back the folder of a run that was just deleted.
    out = () if path is None and len(folders) == 1 else ("--out", str(file))
    held = [f"--place={folder.id}={(places or {})[folder.id]}" for folder in folders if folder.id in (places or {})]
    run_module(folders[0], REPORT, *(str(folder.path) for folder in folders), *out, *held, seconds=seconds)
    return ReportPath(file)


def _place(folders: Sequence[RunFolder]) -> Path:
    first = folders[0]
    if len(folders) == 1:
        return first.report
    digest = hashlib.sha256("\n".join(str(folder.path) for folder in folders).encode()).hexdigest()[:6]
    return first.path.parent / f"report-{first.id}-{digest}.html"
