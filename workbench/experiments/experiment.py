"""An experiment as any process holds it: an id and a folder. It is carried forward by a process of its own."""

from __future__ import annotations

import json
import math
import pkgutil
import shutil
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

from workbench.base.errors import RunError, RunFailed
from workbench.experiments.driver import start_driver
from workbench.experiments.experiment_folder import ENDED, ExperimentFolder
from workbench.experiments.launching import end, start_wanted, stop
from workbench.experiments.plan import version_here
from workbench.experiments.result import summary_html
from workbench.experiments.snapshot import Shown, Snapshot
from workbench.experiments.words import FINAL
from workbench.store.awaited import Awaited
from workbench.store.reached import tail
from workbench.store.result import frame
from workbench.store.state import exclusive

if TYPE_CHECKING:
    import pandas

    from workbench.client.run import Run
    from workbench.recipes.recipe import Recipe

MOST_DRIVERS = 5
"""Started by one who waits; that many ends without a message have a cause that the next would meet, too."""
ROOM_BYTES = 1 << 14
"""Below this no state can be replaced: the new one stands beside the old one first."""
UNDRIVEN = ("starting", "interrupted")
Folder = TypeVar("Folder", bound=ExperimentFolder)
Result = TypeVar("Result", bound=dict[str, Any])


class Experiment(Awaited[Result], Generic[Folder, Result]):
    """A race, a sweep or a tuning: all are found, followed, waited for, carried forward and cancelled alike.

    Args:
        which: its id, a unique beginning of it, its name, or its folder.
        runs_dir: the runs folder, beside which all of its kind lie; else ``$WORKBENCH_RUNS``, else ``./runs``.

    Raises:
        RunError: no such one.
    """

    kind: ClassVar[type[ExperimentFolder]]
    """Class of its folder, which holds its name and its place."""
    view: ClassVar[str] = "workbench.jupyter.watch.experiment_view:ExperimentView"
    """The widget of :meth:`watch` as ``module:class``: it stands above and must not be imported."""

    def __init__(self, which: str | Path | Folder, runs_dir: str | Path | None = None) -> None:
        found = which if isinstance(which, ExperimentFolder) else self.kind.find(which, runs_dir)
        self.folder = cast(Folder, found)
        self._drivers = 0

    @property
    @abstractmethod
    def plan(self) -> Any:
        """Its plan."""

    @abstractmethod
    def look(self) -> Any:
        """Read the state of its runs (:class:`workbench.experiments.readings.Status`)."""

    @abstractmethod
    def _snapshot(self, status: str, now: Any = None) -> Snapshot[Any, Any]:
        """Return plan and state with a status; the state is read unless it is given."""

    @abstractmethod
    def run_of(self, pick: str) -> Run:
        """Return the run of one of the picks of :meth:`shown`.

        Raises:
            RunError: no such pick, or its run has not begun.
        """

    @abstractmethod
    def recipe_of(self, pick: str) -> Recipe:
        """Return the recipe of one of the picks of :meth:`shown`, to compose with.

        Raises:
            RunError: no such pick. RecipeError: it cannot be trained here.
        """

    def glance(self) -> Any:
        """Return what it says by its runs alone, without notes on who drives it."""
        state = self.folder.read_state()
        return replace(self._snapshot(state["status"]), error=state["message"] * (state["status"] == "failed"))

    @property
    def seen(self) -> Snapshot[Any, Any]:
        """All that it says at this moment, read once."""
        status = self.status
        return replace(self._snapshot(status), note=self.note, error=self.message if status == "failed" else "")

    @property
    def result(self) -> Result:
        """All of it, JSON-able."""
        return cast(Result, self.seen.result())

    @property
    def summary(self) -> str:
        """All that it says, in plain words."""
        return self.seen.summary

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Its runs, points or settings: one mapping per row."""
        return self._snapshot(self.status).rows

    @property
    def table(self) -> str:
        """Its arms, points or settings as text for terminals."""
        return self._snapshot(self.status).table_text()

    @property
    def brief(self) -> str:
        """Its result so far in a few words, for one line of a table."""
        return self._snapshot(self.status).brief

    @property
    def going(self) -> int:
        """Runs that train or wait for their turn, also those of one that was cancelled a moment ago."""
        return self._snapshot(self.status).going

    def shown(self) -> Shown:
        """Return it as it is now, for a page that draws it live."""
        return self.seen.shown()

    @property
    def id(self) -> str:
        """Its id."""
        return self.folder.id

    @property
    def status(self) -> str:
        """``racing``, ``sweeping`` or ``tuning``; ``finished``, ``failed`` or ``cancelled``; where nobody drives it
        ``starting`` at first, then ``interrupted``."""
        status = str(self.folder.read_state()["status"])
        if status in ENDED or self.folder.driven():
            return status
        return "starting" if self.folder.starting() else "interrupted"

    @property
    def message(self) -> str:
        """Its present work, or why it ended."""
        return self._no_space or str(self.folder.read_state()["message"])

    @property
    def note(self) -> str:
        """A remark for a reader of its numbers; empty without one."""
        begun, here = self.plan.version, version_here()
        other = "" if begun == here else (
            f"begun by workbench {begun}, and this is {here}: its runs may differ in more than their recipes"
        )  # fmt: skip
        undriven = f"nobody carries it on; `{self.folder.command}` does" if self.status == "interrupted" else ""
        return "; ".join(filter(None, (other, undriven, self._no_space)))

    @property
    def _no_space(self) -> str:
        """The reason why one that goes on stands still: on a full disk nobody can write that there."""
        if self.folder.read_state()["status"] in ENDED:
            return ""
        try:
            free = shutil.disk_usage(self.folder.path).free
        except OSError:
            return ""
        return "" if free >= ROOM_BYTES else f"waiting: no space is left for {self.folder.path}"

    def advance(self, start: Callable[..., Run] | None = None, rates: Any = None) -> Any:
        """Bring it forward as far as it goes now; safe to call at any time, from any process, any number of times.

        Args:
            start: launches a run; None for :func:`workbench.client.launch.launch`. rates: of a machine, see
                :func:`workbench.forecast`; None for those that it was begun with.

        Returns:
            The state of its runs.

        Raises:
            RunError: it cannot be read, or a run not be launched (a full disk); calling again tries again.
            OSError: its folder cannot be written to.
        """
        folder = self.folder
        with exclusive(folder.path):
            status, now = folder.read_state()["status"], self.look()
            if status in ENDED:
                return now
            now = self._prepare(now, rates)
            if now.over:
                self._close(now)
                folder.write_state("failed" if now.failed else "finished", now.failed)
                return now
            start_wanted(folder, self.plan, now, start)
            self._tell(status, now)
        return now

    def _prepare(self, now: Any, rates: Any) -> Any:
        """Stop runs that are not needed and decide which come next; returns the state after that."""
        return now

    def _close(self, now: Any) -> None:
        """Write what has come out to the events."""

    def _tell(self, status: str, now: Any) -> None:
        """Write its progress, where it has changed."""
        if self.folder.read_state()["message"] != (message := self._snapshot(status, now).progress):
            self.folder.write_state(status, message)

    def cancel(self) -> list[str]:
        """End it for good and stop its runs, each with a checkpoint; returns their ids. Results so far stay.

        Raises:
            RunError: it has ended, and none of its runs goes on.
        """
        return end(self.folder, self._stop_runs)

    def _stop_runs(self) -> list[str]:
        plan = self.plan
        return stop(plan.run_folder(job) for job, each in self.look().runs if each.status == "going")

    def html(self) -> str:
        """Return all of it as a fragment without scripts, every name escaped."""
        from workbench.experiments.report import cell_html

        return cell_html(self.seen)

    def report(self, path: str | Path | None = None) -> Path:
        """Write one HTML page with tables and pictures; returns its path.

        Args:
            path: the file, replaced whole; None for ``report.html`` in its folder.

        Raises:
            OSError: the file cannot be written.
        """
        # Here: they load Plotly.
        from workbench.experiments.report import report_html
        from workbench.plots.page import write_page

        return write_page(path or self.folder.path / "report.html", report_html(self.seen))

    def frame(self) -> pandas.DataFrame:
        """Return :attr:`rows` as a pandas table.

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
            start_driver(self, Path(self.plan.folder))

    def ended(self, deadline: float = math.inf) -> bool:
        """Return True once it has ended; where nobody drives it, somebody does from now on.

        Args:
            deadline: of ``time.monotonic``.

        Raises:
            TimeoutError: the deadline has passed. RunFailed: drivers end without a message.
        """
        status, noun = self.status, self.folder.noun
        if status in ENDED:
            return True
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{noun} '{self.id}' has not ended in time; it goes on ({self.message})")
        if status in UNDRIVEN and start_driver(self, Path(self.plan.folder)):
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
        """Return the result of one that has ended.

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
