"""From what a page may name (a place and a run id, never a path) to a run's folder, held inside its runs folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from jupyter_core.paths import jupyter_runtime_dir
from tornado.web import HTTPError

from workbench.client.listing import by_time
from workbench.jupyter.feed.registered_roots import NOTES, all_registered, registered
from workbench.store.find import run_ids
from workbench.store.folder import RUNS_VARIABLE, RunFolder, is_run_id

HERE = "here"
"""The place that every server has: its own runs folder."""
# Of an answer to a wrong id.
_NAMED = 3


class Refused(HTTPError):
    """A request that is answered with an error, and what to do about it.

    Args:
        status: HTTP status code.
        text: for people; may hold what the request said.
    """

    def __init__(self, status: int, text: str) -> None:
        # The base class formats its message with "%", and this one may hold any text.
        super().__init__(status)
        self.text = text


@dataclass(frozen=True)
class Places:
    """The runs folders that a server shows.

    Args:
        here: the server's own runs folder.
        notes: where kernels write down theirs (:mod:`workbench.jupyter.feed.registered_roots`).
        within: the server's root folder: runs folders in it are listed, beside its own. None: its own alone.
    """

    here: Path
    notes: Path
    within: Path | None = None

    @classmethod
    def of_server(cls, root_dir: str) -> Places:
        """Return ``$WORKBENCH_RUNS``, else ``runs`` in the server's root folder; notes in Jupyter's runtime folder."""
        here = Path(root_dir, os.environ.get(RUNS_VARIABLE) or "runs").expanduser().absolute()
        return cls(here, Path(jupyter_runtime_dir(), NOTES), Path(root_dir).expanduser().absolute())

    def root(self, place: str) -> Path:
        """Return the runs folder of a place.

        Raises:
            Refused: there is no such place.
        """
        root = self.here if place == HERE else registered(self.notes, place)
        if root is None:
            raise Refused(
                404,
                f"no place {place[:64]!r}; legal: 'here', or the key that a kernel on this machine was given when it"
                " showed one of its runs (run the cell again)",
            )
        return root

    def listed(self) -> dict[str, Path]:
        """Return the runs folders whose runs a list of all shows, by place: notes of other projects are none of its."""
        found = {HERE: self.here}
        if self.within is None:
            return found
        known, inside = {os.path.realpath(self.here)}, os.path.realpath(self.within) + os.sep
        for place, root in all_registered(self.notes).items():
            real = os.path.realpath(root)
            if real not in known and real.startswith(inside) and os.path.isdir(real):
                known.add(real)
                found[place] = root
        return found

    def run_ids(self, place: str) -> list[str]:
        """Return ids of a place's runs, newest first."""
        return sorted(run_ids(self.root(place)), key=by_time, reverse=True)

    def folder(self, place: str, run: str) -> RunFolder:
        """Return a run's folder; nothing that is read of it lies outside of the place.

        Raises:
            Refused: the id has not the form of ids, there is no such run, or a link in it leads elsewhere.
        """
        if not is_run_id(run):
            raise Refused(400, f"run id {run[:64]!r} is not of the form [a-z0-9-], at most 64 long")
        root = self.root(place)
        folder = RunFolder(root / run)
        # A link could lead anywhere; runs live in the runs folder.
        if folder.path.is_symlink() or not folder.path.is_dir():
            known = self.run_ids(place)[:_NAMED]
            latest = f"the latest: {', '.join(known)}" if known else "it holds no runs"
            raise Refused(404, f"no run '{run}' in place '{place}'; {latest}")
        hold(folder)
        return folder


def hold(folder: RunFolder) -> None:
    """Check that everything read of a run is a file or folder inside of its runs folder.

    Raises:
        Refused: a link leads outside, or something is neither file nor folder (reading a pipe would never return).
        OSError: the folder cannot be read.
    """
    for place in (folder.path, folder.telemetry, folder.control):
        try:
            with os.scandir(place) as entries:
                # Checkpoints are never read here, and people keep them on other disks.
                found = [entry for entry in entries if entry.path != str(folder.checkpoints)]
        except (FileNotFoundError, NotADirectoryError):
            continue  # not written yet
        for entry in found:
            if entry.is_symlink():
                root, target = os.path.realpath(folder.path.parent), os.path.realpath(entry.path)
                if not target.startswith(root + os.sep):
                    raise Refused(403, f"'{entry.name}' of run '{folder.id}' is a link out of its runs folder")
            # A file may have gone since the scan: then there is nothing to wait for.
            if not (entry.is_file() or entry.is_dir()) and os.path.exists(entry.path):
                raise Refused(403, f"'{entry.name}' of run '{folder.id}' is neither a file nor a folder")
