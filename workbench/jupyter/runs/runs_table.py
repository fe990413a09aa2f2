"""The table of runs: what the folders of all runs say, told to the page as it changes, and what the page asks of them.

Rows go to the page as messages, all at first and then those that changed. As a trait, a thousand of them would be sent
whole with every step of one run, and stay in the saved notebook.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import traitlets

from workbench.base.errors import RunError
from workbench.base.text import plain
from workbench.client.listing import Listed, Listing
from workbench.client.run import Run
from workbench.client.run_list import runs
from workbench.jupyter.bundles import BundledWidget, code, style
from workbench.jupyter.runs.named_experiments import Briefs
from workbench.jupyter.runs.run_actions import VERBS, ActionResult, RunActions
from workbench.jupyter.saved_output import view_bundle
from workbench.jupyter.steering import Steering, place_of
from workbench.store.find import find

REFRESH_SECONDS = 2.0
FIRST = 60
"""Rows read before the table is shown: more than any window holds. The thread reads the others."""
# What was read of a folder serves the next table of it, as after running its cell again.
_listings: weakref.WeakValueDictionary[Path, Listing] = weakref.WeakValueDictionary()
_looks: dict[Path, dict[str, Any]] = {}
"""Filter, sort and columns that the last table of a folder was left with: its cell, run again, shows them again."""


class RunsTable(BundledWidget):
    """Runs of a runs folder, those of other processes and of earlier kernels included.

    Args:
        refresh_seconds: how often the folders are looked at; 0 only when asked (:meth:`refresh`).
        fork: called with a run's id when the page wants to fork it; without it, it cannot ask.
        most_watched: how many runs the page may put into :attr:`watched`; 0 where nobody draws them.
        composed: gives the recipe (as a dictionary) that a single run's difference is shown against.

    Attributes:
        rows: one mapping per run, newest first (:class:`workbench.client.listing.Listed`).
        selected: ids of the selected runs, newest first: those that the toolbar acts on.
        watched: ids of the runs whose curves are to be drawn, in the order in which they came.
        experiment: the race or sweep that is shown in their place, as ``race:NAME 20260131-081500``; else empty.
        look: filter, sort and columns as the page has them.
        root: the runs folder.
        complaint: why the folders cannot be read, else empty.
        seen: whether a page has ever shown it.
    """

    _code = code("runs_table")
    _css = style("runs_table")

    rows = traitlets.List(traitlets.Dict())
    selected = traitlets.List(traitlets.Unicode()).tag(sync=True)
    watched = traitlets.List(traitlets.Unicode()).tag(sync=True)
    experiment = traitlets.Unicode().tag(sync=True)
    most_watched = traitlets.Int(0).tag(sync=True)
    place = traitlets.Unicode("", help="what the server extension calls the runs folder").tag(sync=True)
    look = traitlets.Dict().tag(sync=True)
    complaint = traitlets.Unicode("").tag(sync=True)
    verbs = traitlets.List(traitlets.Unicode(), help="what the page may ask for").tag(sync=True)

    def __init__(
        self,
        runs_dir: str | Path | None = None,
        refresh_seconds: float = REFRESH_SECONDS,
        fork: Callable[[str], None] | None = None,
        composed: Callable[[], dict[str, Any] | None] = lambda: None,
        most_watched: int = 0,
    ) -> None:
        listing = Listing(runs_dir)
        root = listing.root
        absent = [verb for verb, there in (("fork", fork is not None), ("watch", most_watched > 0)) if not there]
        verbs = [verb for verb in VERBS if verb not in absent]
        super().__init__(verbs=verbs, look=_looks.get(root, {}), most_watched=most_watched, place=place_of(root))
        self.observe(lambda change: _looks.update({root: change["new"]}), names="look")
        self._runs_dir, self._fork = runs_dir, fork
        self._listing = _listings.setdefault(root, listing)
        self.root = root
        self.actions = RunActions(root, composed)
        self._steering = Steering(self._run, self._answer, self._soon)
        self.seen = False
        self._closed = threading.Event()
        self._wake = threading.Event()
        # One look at a time, from reading to dropping what is gone: told late, it would drop a run launched since.
        self._looking, self._sending = threading.RLock(), threading.RLock()
        self._seq, self._listed = -1, Listed([], 0, 0)
        # Of the last deletion.
        self._unwatched: list[str] = []
        self._briefs, self._told_briefs = Briefs(root), dict[str, str]()
        # Two, so that a stop does not wait for an export. Threads start with the first request.
        self._workers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="workbench-runs-action")
        self.on_msg(self._heard)
        self.refresh(None if self._listing.warm else FIRST)
        if refresh_seconds > 0:
            self._wake.set()
            # The thread holds no reference to the table: a Lab that nobody has any more must not be read for ever.
            arguments = (weakref.ref(self), self._wake, self._closed, refresh_seconds)
            threading.Thread(target=_follow, args=arguments, name="workbench-runs", daemon=True).start()

    def __repr__(self) -> str:
        chosen = f", {len(self.selected)} selected" if self.selected else ""
        return f"RunsTable({self._listed.total} runs of {self._listing.root}{chosen})"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return view_bundle(self.model_id, repr(self), runs(self._runs_dir)._repr_html_()), {}

    def refresh(self, most: int | None = None) -> None:
        """Look at the folders now; sends only what is new.

        Args:
            most: rows to read; None for as many as a listing has.
        """
        with self._looking:
            self._refresh(most)

    def _refresh(self, most: int | None) -> None:
        try:
            found = self._listing.look() if most is None else self._listing.look(most)
        except OSError as error:
            self.complaint = f"the runs folder cannot be read: {error}"
            return
        if self.complaint:
            self.complaint = ""
        self._tell(found)
        # A deleted run must not stay selected, or the next button would ask for it. Beyond a first look at few, none
        # is known to be gone.
        known = {row["id"] for row in found.rows}
        for name in ("selected", "watched") if most is None else ():
            if any(run_id not in known for run_id in getattr(self, name)):
                setattr(self, name, [run_id for run_id in getattr(self, name) if run_id in known])

    def refresh_experiments(self) -> None:
        """Read what races, sweeps and tunings say whose runs have changed; sends it where it is new."""
        found = self._briefs.of(self._listed.rows)
        if found != self._told_briefs:
            self._told_briefs = found
            self._send_briefs()

    def watch(self, *run_ids: str) -> str:
        """Have the curves of these runs drawn, too; the oldest of more than :attr:`most_watched` give way.

        Returns:
            A sentence on those that gave way; empty where none did.
        """
        wanted = [*(each for each in self.watched if each not in run_ids), *run_ids]
        gone, self.watched = wanted[: -self.most_watched], wanted[-self.most_watched :]
        names = {row["id"]: plain(row["name"]) for row in self.rows}
        return gave_way([names.get(run_id, run_id) for run_id in gone], self.most_watched)

    def runs(self, run_ids: Sequence[str]) -> list[Run]:
        """Return the runs of these ids.

        Raises:
            RunError: one of them is gone.
        """
        return [Run(find(run_id, self._runs_dir)) for run_id in run_ids]

    def close(self) -> None:
        """Stop reading and leave the page."""
        # ipywidgets closes widgets when they are collected, also one whose construction failed.
        if hasattr(self, "_workers"):
            self._closed.set()
            self._wake.set()
            self._workers.shutdown(wait=False, cancel_futures=True)
        super().close()

    @property
    def folded(self) -> str:
        """Return where the runs of a race stand, in words, or how to have them stand together."""
        ways = ["choose 'by experiment'"] if self.look.get("group") else []
        ways += ["clear the search"] if str(self.look.get("filter") or "").strip() else []
        where = "in one line of this table"
        return f"{' and '.join(ways)} to see its runs {where}" if ways else f"its runs stand together {where}"

    def say(self, result: ActionResult, request: int = 0) -> None:
        """Tell the user something, in the line under the toolbar."""
        if self.comm is not None:
            self.send({"type": "said", "request": request, **result.message()})

    def note(self, text: str) -> None:
        """Tell the user something, if there is anything to tell."""
        if text:
            self.say(ActionResult(text))

    def show(self, result: ActionResult, request: int = 0) -> None:
        """Tell the user something, and open what goes with it over the Lab."""
        if result.sheet is not None and self.comm is not None:
            self.send({"type": "sheet", **result.sheet}, [result.page] if result.page is not None else None)
        self.say(result, request)

    def work(self, do: Callable[[], None]) -> None:
        """Do something in a thread of the table; what goes wrong is told above it."""

        def safely() -> None:
            try:
                do()
            except Exception as error:
                self.say(ActionResult(str(error) or type(error).__name__, error=True))

        self._workers.submit(safely)

    def _tell(self, found: Listed | None, whole: bool = False) -> None:
        """Send what is new; ``found`` None: what was told last, to a page that has nothing yet."""
        with self._sending:
            before = self._listed
            found = self._listed = found or before
            old = {row["id"]: row for row in before.rows}
            order = [row["id"] for row in found.rows]
            fresh = [row for row in found.rows if whole or old.get(row["id"]) != row]
            moved = order != list(old)
            counts = (found.total, found.trashed)
            if not (whole or fresh or moved or counts != (before.total, before.trashed) or self._seq < 0):
                return
            self._seq += 1
            if self.comm is not None:
                self.send(
                    {
                        "type": "rows", "seq": self._seq, "whole": whole, "rows": fresh, "total": found.total,
                        "trashed": found.trashed, "order": order if whole or moved else None,
                    }
                )  # fmt: skip
        if fresh or moved:
            self.rows = found.rows

    def _heard(self, _: Any, message: Any, __: Any) -> None:
        """Take a message of the page. Returns at once; what takes time goes to a thread."""
        if not isinstance(message, dict) or self._closed.is_set():
            return
        kind = message.get("type")
        if kind == "hello":
            self.seen = True
            self._tell(None, whole=True)
            self._send_briefs()
        elif kind == "knobs":
            self.work(self._send_knobs)
        elif kind == "trash":
            self.work(self._send_trash)
        elif kind == "look":
            self._soon()
        elif kind == "steer":
            self._steering.receive(message)
        elif kind == "do" and message.get("verb") == "fork":
            # Here, since it fills the forms, which only this thread changes.
            self._do(message)
        elif kind == "do" and message.get("verb") in ("score", "finetune"):
            # For minutes, which would keep a worker from exports and stops.
            threading.Thread(target=self._do, args=(message,), name="workbench-runs-score", daemon=True).start()
        elif kind == "do":
            self._workers.submit(self._do, message)

    def _run(self, run_id: str) -> Run | None:
        """Return the run of an id that a page has sent, never read as a path."""
        try:
            return Run(find(run_id, self._listing.root))
        except RunError:
            return None

    def _answer(self, answer: dict[str, Any]) -> None:
        if self.comm is not None:
            self.send(answer)

    def _soon(self) -> None:
        """Have the folders looked at now."""
        self._wake.set()

    def _send_knobs(self) -> None:
        # Here, in a thread: it loads all choices, which a table that nobody searches does not need.
        from workbench.jupyter.runs.knob_texts import knob_texts

        found = self._listing.knobs([row["id"] for row in self._listed.rows])
        self.send({"type": "knobs", **found, "texts": knob_texts([*found["same"], *found["differ"]])})

    def _send_briefs(self) -> None:
        if self._told_briefs and self.comm is not None:
            self.send({"type": "experiments", "briefs": self._told_briefs})

    def _send_trash(self) -> None:
        rows = self._listing.trash()
        self.send({"type": "trash", "rows": rows, "knobs": self._listing.trashed_knobs([row["id"] for row in rows])})

    def _do(self, message: dict[str, Any]) -> None:
        request = message.get("request")
        number = request if isinstance(request, int) else 0
        given = message.get("runs")
        ids = [run_id for run_id in given if isinstance(run_id, str)] if isinstance(given, list) else []
        verb = str(message.get("verb"))
        try:
            if verb == "fork" and self._fork is not None and len(ids) == 1:
                self._fork(ids[0])
                self.say(ActionResult("fork: edit the recipe in the forms, then press the button under them"), number)
                return
            if verb == "delete":
                self._unwatched = [run_id for run_id in self.watched if run_id in ids]
            # Where it takes long, word comes before it is done.
            for result in self.actions.perform(verb, ids, message):
                if self._closed.is_set():
                    return
                self.show(result, number)
                if not result.going:
                    self.refresh()
            if verb in ("delete", "restore", "empty"):
                self._send_trash()
            if verb == "restore":
                self._watch_again(ids)
        except Exception as error:  # the widget is where the user who pressed the button looks
            self.say(ActionResult(f"{verb}: {error}", error=True), number)

    def _watch_again(self, ids: Sequence[str]) -> None:
        """Watch restored runs again that were watched when they were deleted, as far as there is room."""
        known = {row["id"] for row in self.rows}
        again = [run_id for run_id in self._unwatched if run_id in ids and run_id in known.difference(self.watched)]
        self.watched = [*self.watched, *again][: max(self.most_watched, len(self.watched))]


def gave_way(names: Sequence[str], most: int) -> str:
    """Return what to say of runs that are not drawn any more, since others are; the page has the same in outcome.js.

    Example:
        >>> gave_way(["mine"], 8)
        'mine gave way, 8 runs at most are drawn: to draw it again, take another away, then press Enter on its row'
    """
    it, its = ("it", "its") if len(names) == 1 else ("them", "their")
    way = f"to draw {it} again, take another away, then press Enter on {its} row"
    return f"{', '.join(names)} gave way, {most} runs at most are drawn: {way}" if names else ""


def _follow(table: weakref.ref[RunsTable], wake: threading.Event, closed: threading.Event, seconds: float) -> None:
    while not closed.is_set():
        wake.wait(seconds)
        wake.clear()
        alive = table()
        if alive is None or closed.is_set():
            return
        started = time.monotonic()
        try:
            alive.refresh()
            alive.refresh_experiments()
        except Exception as error:  # the thread goes on, and the page is the only place where a user would see it
            alive.complaint = f"reading the runs failed, trying on: {type(error).__name__}: {error}"
        took = time.monotonic() - started
        del alive
        # A slow file system must not keep the kernel busy with reading.
        closed.wait(4 * took)
