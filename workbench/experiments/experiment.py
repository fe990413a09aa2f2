"""An experiment as any process holds it: an id and a folder. It is carried forward by a process of its own."""

from __future__ import annotations

import importlib
import json
import math
import pkgutil
import shutil
import time
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

from workbench.base.errors import RunError, RunFailed
from workbench.experiments.driver import start_driver
from workbench.experiments.experiment_folder import ENDED, ExperimentFolder
from workbench.experiments.plan import version_here
from workbench.experiments.result import summary_html
from workbench.experiments.shown import Shown
from workbench.experiments.words import FINAL
from workbench.store.awaited import Awaited
from workbench.store.frame import frame
from workbench.store.log import tail

if TYPE_CHECKING:
    import pandas

    from workbench.client.run import Run
    from workbench.recipes.recipe import Recipe

MOST_DRIVERS = 5
"""Started by one who waits; that many ends without a word have a cause that the next would meet, too."""
ROOM_BYTES = 1 << 14
"""Below this no state can be replaced: the new one stands beside the old one first."""
UNDRIVEN = ("starting", "interrupted")
Folder = TypeVar("Folder", bound=ExperimentFolder)
Result = TypeVar("Result", bound=dict[str, Any])


class Experiment(Awaited[Result], Generic[Folder, Result]):
    """What races, sweeps and tunings have in common: they are found, followed, waited for and cancelled alike.

    Args:
        which: its id, a unique beginning of it, its name, or its folder.
        runs_dir: the runs folder, beside which all of its kind lie; else ``$WORKBENCH_RUNS``, else ``./runs``.

    Raises:
        RunError: no such one.
    """

    kind: ClassVar[type[ExperimentFolder]]
    """Its folder's class, which says what it is called and where all of its kind lie."""
    view: ClassVar[str] = "workbench.jupyter.watch.experiment_view:ExperimentView"
    """What :meth:`watch` shows, as ``module:class``: it stands above and must not be imported."""

    def __init__(self, which: str | Path | Folder, runs_dir: str | Path | None = None) -> None:
        found = which if isinstance(which, ExperimentFolder) else self.kind.find(which, runs_dir)
        self.folder = cast(Folder, found)
        self._drivers = 0

    @property
    @abstractmethod
    def plan(self) -> Any:
        """What was asked."""

    @property
    @abstractmethod
    def result(self) -> Result:
        """All of it, JSON-able."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """How it stands, in plain words."""

    @property
    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """Its runs as a table: one mapping per row."""

    @property
    @abstractmethod
    def table(self) -> str:
        """What was compared, as text for terminals."""

    @property
    @abstractmethod
    def standing(self) -> Any:
        """All that its runs say now."""

    @property
    def going(self) -> int:
        """Runs that train or wait for their turn, also those of one that was cancelled a moment ago."""
        return int(self.standing.going)

    @abstractmethod
    def shown(self) -> Shown:
        """As it is now, for a page that draws it live."""

    @property
    @abstractmethod
    def brief(self) -> str:
        """What it says so far, in a few words for one line of a table."""

    @abstractmethod
    def run_of(self, pick: str) -> Run:
        """The run of one of the picks of :meth:`shown`.

        Raises:
            RunError: no such pick, or its run has not begun.
        """

    @abstractmethod
    def recipe_of(self, pick: str) -> Recipe:
        """The recipe of one of the picks of :meth:`shown`, to compose with.

        Raises:
            RunError: no such pick. RecipeError: it cannot be trained here.
        """

    @property
    def id(self) -> str:
        """Its id."""
        return self.folder.id

    @property
    def status(self) -> str:
        """``racing`` or ``sweeping``, ``finished``, ``failed`` or ``cancelled``; where nobody drives it ``starting``
        at first, then ``interrupted``."""
        status = str(self.folder.read_state()["status"])
        if status in ENDED or self.folder.driven():
            return status
        return "starting" if self.folder.starting() else "interrupted"

    @property
    def message(self) -> str:
        """What it is doing, or why it ended."""
        return self._no_space or str(self.folder.read_state()["message"])

    @property
    def note(self) -> str:
        """What a reader of its numbers should know; empty where there is nothing."""
        begun, here = self.plan.version, version_here()
        other = "" if begun == here else (
            f"begun by workbench {begun}, and this is {here}: its runs may differ in more than their recipes"
        )  # fmt: skip
        undriven = f"nobody carries it on; `{self.folder.command}` does" if self.status == "interrupted" else ""
        return "; ".join(filter(None, (other, undriven, self._no_space)))

    @property
    def _no_space(self) -> str:
        """Why one that goes on does not: on a full disk nobody can write that there."""
        if self.folder.read_state()["status"] in ENDED:
            return ""
        try:
            free = shutil.disk_usage(self.folder.path).free
        except OSError:
            return ""
        return "" if free >= ROOM_BYTES else f"waiting: no space is left for {self.folder.path}"

    @property
    def _error(self) -> str:
        return self.message if self.status == "failed" else ""

    def cancel(self) -> list[str]:
        """End it for good and stop its runs, each with a checkpoint; returns their ids. What has ended stays.

        Raises:
            RunError: it has ended, and none of its runs goes on.
        """
        stopped: list[str] = importlib.import_module(f"{self.folder.package}.advance").cancel(self.folder)
        return stopped

    def html(self) -> str:
        """All of it as a fragment without scripts, every name escaped."""
        return self._drawn("cell_html")

    def report(self, path: str | Path | None = None) -> Path:
        """Write one HTML page with tables and pictures; returns its path.

        Args:
            path: the file, replaced whole; None for ``report.html`` in its folder.

        Raises:
            OSError: the file cannot be written.
        """
        # Here: it loads Plotly.
        from workbench.plots.page import write_page

        return write_page(path or self.folder.path / "report.html", self._drawn("report_html"))

    def _drawn(self, form: str) -> str:
        text: str = getattr(importlib.import_module(f"{self.folder.package}.report"), form)(
            self.plan, self.standing, self.summary
        )
        return text

    def frame(self) -> pandas.DataFrame:
        """:attr:`rows` as a pandas table.

        Raises:
            WorkbenchError: pandas is not installed.
        """
        return frame(self.rows)

    @property
    def opened_by(self) -> str:
        """The call that opens it in any notebook, as Python text."""
        found_by_id = self.folder.path.parent == self.kind.root() and not self.folder.is_stage
        return f"wb.experiment({json.dumps(self.id if found_by_id else str(self.folder.path), ensure_ascii=False)})"

    def resume(self) -> None:
        """See that somebody drives it; nothing to do where it has finished.

        Raises:
            RunError: it was cancelled, or has failed.
        """
        if (status := self.status) in ENDED and status != "finished":
            raise RunError(f"{self.folder.noun} '{self.id}' is {status}: {FINAL}")
        self._see_driven()

    def _see_driven(self) -> None:
        if self.status in UNDRIVEN:
            start_driver(self.folder, Path(self.plan.folder))

    def ended(self, deadline: float = math.inf) -> bool:
        """Whether it has ended; where nobody drives it, somebody does from now on.

        Args:
            deadline: of ``time.monotonic``.

        Raises:
            TimeoutError: the deadline has passed. RunFailed: drivers end without a word.
        """
        status, noun = self.status, self.folder.noun
        if status in ENDED:
            return True
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{noun} '{self.id}' has not ended in time; it goes on ({self.message})")
        if status in UNDRIVEN and start_driver(self.folder, Path(self.plan.folder)):
            self._drivers += 1
            if self._drivers > MOST_DRIVERS:
                raise RunFailed(f"{noun} '{self.id}': its drivers exit without a message: "
                                f"{tail(self.folder.log, 5) or self._no_space}")  # fmt: skip
        return False

    def watch(self) -> Any:
        """Show table and pictures in the present notebook cell, live where somebody looks, and return the view."""
        self._see_driven()
        return pkgutil.resolve_name(self.view)(self).show()

    def outcome(self) -> Result:
        """The result of one that has ended.

        Raises:
            RunFailed: it failed or was cancelled.
        """
        found = self.result
        if found["status"] != "finished":
            why = FINAL if found["status"] == "cancelled" else found.get("error") or self.message
            raise RunFailed(f"{self.folder.noun} '{self.id}' {found['status']}{f': {why}' if why else ''}")
        return found

    def __repr__(self) -> str:
        return self.summary

    def _repr_html_(self) -> str:
        return summary_html(self.kind.noun, self.status, self.summary)
