"""The live view of runs in a notebook: loss, speed, layer activity, events, and buttons that reach the run.

The widget holds no training state. A :class:`workbench.jupyter.watch.feed.Feed` tails the run folders and sends what
is new;
the page draws it (``frontend/``, bundled into ``static/``). When all runs have ended, the output is replaced through
its display id by a picture and a table that need neither kernel nor scripts.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import traitlets
from IPython.core.getipython import get_ipython
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from workbench.base.errors import RunError
from workbench.base.text import plain
from workbench.client.run import Run
from workbench.client.titles import titled, titles
from workbench.jupyter import cell_widgets
from workbench.jupyter.bundles import BundledWidget, code, style
from workbench.jupyter.feed.view import view_of
from workbench.jupyter.saved_output import view_bundle
from workbench.jupyter.steering import Steering, place_of
from workbench.jupyter.watch.feed import Feed
from workbench.jupyter.watch.figures import Figures
from workbench.jupyter.watch.saved_picture import SavedPicture
from workbench.plots.palette import places
from workbench.store.find import find
from workbench.store.folder import RunFolder, runs_root
from workbench.store.state import FINAL, actual_status
from workbench.store.view import RunView


class Monitor(BundledWidget):
    """Live curves of one or several runs.

    Show it by making it the last expression of a cell, or with :meth:`show`. It goes on while the kernel computes,
    and again after the page was reloaded.

    Args:
        runs: the runs, in the order of their colours: a :class:`~workbench.client.run.Run`, its folder or its id.
        target_loss: draws a line there, nats.
        keep_live: keep the live view at the end of the runs, with the static picture as what GitHub, nbconvert and
            viewers without widgets show. A notebook that is later opened in JupyterLab without its kernel then
            shows "model not found" instead of the picture, which is why it is off.
        example: starts a run when somebody asks for one in a view of none, which then says what to do; without it
            there must be runs.
        edit: opens the recipe of a run (its id) to be changed and launched anew; without it the view says how.

    Raises:
        RunError: no runs were given, or one of them does not exist.

    Example:
        >>> Monitor([run], target_loss=6.5)  # doctest: +SKIP
    """

    _code = code("monitor")
    _css = style("monitor")
    snapshot = traitlets.Bytes(help="a drawing of at most 32 kB, for a saved notebook").tag(sync=True)
    advice = traitlets.Unicode(help="one sentence above the plots").tag(sync=True)
    served = traitlets.List(traitlets.Unicode(), help="names of the runs at the server extension").tag(sync=True)
    places = traitlets.Dict(help="id of each run -> its place, which decides its colour").tag(sync=True)
    target_loss = traitlets.Float(None, allow_none=True, help="nats").tag(sync=True)
    example = traitlets.Bool(help="whether a page without runs offers one").tag(sync=True)
    edits = traitlets.Bool(help="whether a recipe can be opened beside this view").tag(sync=True)

    def __init__(
        self,
        runs: Run | RunFolder | str | Sequence[Run | RunFolder | str],
        *,
        target_loss: float | None = None,
        keep_live: bool = False,
        example: Callable[[], object] | None = None,
        edit: Callable[[str], object] | None = None,
    ) -> None:
        self.runs = _runs(runs)
        if not self.runs and example is None:
            raise RunError("there is no run to watch; `workbench runs` lists them, `launch(recipe)` starts one")
        self.keep_live = keep_live
        self._start_example, self._edit = example, edit
        self._display_ids: list[str] = []
        self._settled = self._lean = False
        self._settling = threading.RLock()
        self._shown_in: object = None
        self._shell: Any = None
        self._saved = SavedPicture(self.summary_html, publish, again=self._in_new_cell)
        self.figures = Figures(self._views, publish, self._say)
        ids = [run.id for run in self.runs]
        shown = {"served": _served(self.runs), "places": places(ids), "example": example is not None}
        super().__init__(target_loss=target_loss, edits=edit is not None, **shown)
        # After the comm is there: a feed may send from its first round on.
        self.feed = Feed([run.folder for run in self.runs], self._tell, self._keep, self._ended)
        self._steering = Steering(self._run, lambda answer: self._tell(answer, []), self.feed.start)
        self.on_msg(self._heard)
        self.feed.start()

    def show(self) -> Monitor:
        """Show the view in the output of the present cell, once per cell; returns itself.

        Outside of IPython there is nowhere to show it: its text is printed.
        """
        shell = get_ipython()
        present = getattr(shell, "execution_count", None)
        # `run.watch()` shows the view; as the last expression of the cell it must not give a second one.
        if present is not None and present == self._shown_in:
            return self
        self._shown_in = present
        display_id = f"workbench-{uuid.uuid4().hex}"
        if (self._settled or self.feed_ended) and not self.keep_live:
            publish(self._static_bundle(), display_id)
            self._be_lean()
            cell_widgets.shown(self)
            return self
        self._display_ids.append(display_id)
        if shell is not None and self._shell is None:
            self._shell = shell
            shell.events.register("post_run_cell", self._after_cell)
        publish(self._live_bundle(), display_id)
        self._saved.show()
        self.figures.show()
        cell_widgets.shown(self)
        # The thread of runs that have ended may be through before there was anything to replace.
        if not self.feed.running:
            self.settle()
        return self

    def watch(self, runs: Run | RunFolder | str | Sequence[Run | RunFolder | str]) -> None:
        """Show these runs instead; one that was shown before keeps its colour, and the view its zoom.

        Raises:
            RunError: one of them does not exist.
        """
        wanted = _runs(runs)
        if [run.folder.path for run in wanted] == [run.folder.path for run in self.runs]:
            return
        self.runs = wanted
        ids = [run.id for run in self.runs]
        with self.hold_sync():
            self.places = places(ids, self.places)
            self.served = _served(self.runs)
        self.feed.follow([run.folder for run in self.runs])

    def add(self, run: Run | RunFolder | str) -> None:
        """Show another run as well."""
        (added,) = _runs(run)
        if all(added.folder.path != shown.folder.path for shown in self.runs):
            self.watch([*self.runs, added])

    def stir(self) -> None:
        """One of the runs may go on after its end, resumed elsewhere, or be called otherwise: look again."""
        told = {track.folder.path: track.name for track in self.feed.tracks}
        if self.runs and (not self.feed_ended or any(told.get(run.folder.path) != run.name for run in self.runs)):
            self.feed.start()

    def settle(self) -> bool:
        """Replace the output by its static form if every run has ended; returns whether it is static now.

        Called by itself when the runs end and at the end of every cell, so that a notebook executed headless holds
        the picture: there, only what is published while a cell runs is kept.
        """
        # Whoever comes second waits for the first: an update that comes after its cell would be lost headless.
        with self._settling:
            if not self._settled and self.feed_ended:
                bundle = self._static_bundle()
                # Drawing takes a moment, in which somebody may have resumed a run: its view must stay.
                if self.feed_ended:
                    self._settled = True
                    self._publish_static(bundle)
            return self._settled

    @property
    def feed_ended(self) -> bool:
        """Return whether every run has a final status."""
        return bool(self.runs) and all(actual_status(run.folder) in FINAL for run in self.runs)

    def close(self) -> None:
        """Remove the view from every page and end its thread."""
        # ipywidgets closes widgets when they are collected, also one whose construction failed.
        if hasattr(self, "feed"):
            self.feed.close()
            self._saved.end()
            self.figures.close()
            self._forget_cells()
            cell_widgets.forget(self)
            # A model of its own, which nobody else would close.
            self.layout.close()
        super().close()

    def _ipython_display_(self) -> None:
        self.show()

    def __repr__(self) -> str:
        return f"Monitor({', '.join(f'{plain(run.name)}: {run.status}' for run in self.runs)})"

    def _publish_static(self, bundle: dict[str, Any]) -> None:
        if self.keep_live:
            bundle = self._live_bundle() | bundle
        self._saved.clear()
        for display_id in self._display_ids:
            publish(bundle, display_id, update=True)
        if self._display_ids and not self.keep_live and not self.feed.watched:
            self._be_lean()
        elif self._display_ids and not self.keep_live:
            # A page that was reloaded has forgotten display ids, so the replacement cannot reach it.
            ended, whose = ("run has", "its") if len(self.runs) == 1 else ("runs have", "their")
            self.advice = f"The {ended} ended. To keep {whose} picture in the notebook, {self._in_new_cell()}."
        self._forget_cells()

    def _be_lean(self) -> None:
        """No page has ever drawn this: the executed notebook need not carry the bundle in its widget state."""
        if not self.feed.watched:
            self._lean = True
            self._esm = self._code = self._css = ""
            self.snapshot = b""

    def summary_html(self) -> str:
        """Return the runs as they are now, as a table and a picture without scripts."""
        from workbench.plots.static import summary_html

        return summary_html(self._views())

    def _views(self) -> list[RunView]:
        """Return the runs as pictures want them; a long one is not read a second time."""
        tracks = {track.folder.path: track for track in self.feed.tracks}
        views = [view_of(run.folder, tracks.get(run.folder.path)) for run in self.runs]
        views = titled(views, [run.folder for run in self.runs])
        return [replace(view, place=self.places.get(view.id)) for view in views]

    def _static_bundle(self) -> dict[str, Any]:
        # Matplotlib costs half a second, and most monitors end long after they were shown.
        from workbench.plots.static import summary_bundle

        return summary_bundle(self._views())

    def _live_bundle(self) -> dict[str, Any]:
        names = ", ".join(titles([run.folder for run in self.runs]))
        text = f"Live view of {names}; open the notebook in JupyterLab, or {self._in_new_cell()}, to see it."
        return view_bundle(self.model_id, text)

    def _in_new_cell(self) -> str:
        """Return code that shows these runs again; the cell of this view may launch them, and would launch others."""
        here = runs_root()
        given = [run.id if run.folder.path.parent == here else str(run.folder.path) for run in self.runs]
        return f"run wb.compare({', '.join(map(json.dumps, given))}) in a new cell"

    def _after_cell(self, *_: object) -> None:
        self.settle()

    def _forget_cells(self) -> None:
        shell, self._shell = self._shell, None
        if shell is not None:
            shell.events.unregister("post_run_cell", self._after_cell)

    def _tell(self, header: dict[str, Any], buffers: list[bytes]) -> None:
        if self.comm is not None:
            self.send(header, buffers)

    def _keep(self, snapshot: bytes) -> None:
        if self.comm is not None and not self._lean:
            self.snapshot = snapshot
        # Without a page nobody could save a notebook that needs it.
        if self.feed.watched:
            self._saved.refresh()

    def _ended(self) -> None:
        if self._display_ids:
            self.settle()

    def _heard(self, _: Any, message: Any, __: Any) -> None:
        """Take a message of the page. Returns at once; what takes time goes to a thread."""
        if not isinstance(message, dict):
            return
        if message.get("type") == "resync":
            extra = message.get("extra")
            self.feed.resync([name for name in extra if isinstance(name, str)] if isinstance(extra, list) else [])
        elif message.get("type") == "detail":
            self._detail(message)
        elif message.get("type") == "figure":
            self.figures.receive(message | {"target": self.target_loss})
        elif message.get("type") == "close-figure":
            self.figures.clear()
        elif message.get("type") == "watch":
            self._watch_too(str(message.get("run")))
        elif message.get("type") == "example":
            self._example()
        elif message.get("type") == "edit":
            if self._edit is not None and (run := self._run(str(message.get("run")))) is not None:
                self._edit(run.id)
        else:
            self._steering.receive(message)

    def _run(self, run_id: str) -> Run | None:
        """Return the run of an id; a page may name those alone that it shows."""
        return next((run for run in self.runs if run.id == run_id), None)

    def _detail(self, message: dict[str, Any]) -> None:
        ask, spans, names, points = (message.get(key) for key in ("ask", "spans", "names", "points"))
        if isinstance(ask, int) and isinstance(spans, list) and isinstance(names, list) and isinstance(points, int):
            whole = [span if _is_span(span) else None for span in spans]
            self.feed.detail(ask, whole, [name for name in names if isinstance(name, str)], points)

    def _say(self, text: str, error: bool, figure: str = "") -> None:
        self._tell({"type": "notice", "error": error, "text": text} | ({"figure": figure} if figure else {}), [])

    def _watch_too(self, run_id: str) -> None:
        """Show another run of the same folder as well: a fork that the page has made."""
        try:
            self.add(find(run_id, self.runs[0].folder.path.parent))
        except RunError as error:
            self._say(str(error), True)

    def _example(self) -> None:
        """Start the example that a view without runs offers."""
        if self._start_example is None:
            return
        try:
            self._start_example()
        except Exception as error:  # the view is where the user who pressed the button looks
            self._say(f"no example: {error}", True)


def _runs(given: Run | RunFolder | str | Sequence[Run | RunFolder | str]) -> list[Run]:
    several = [given] if isinstance(given, Run | RunFolder | str) else given
    return [run if isinstance(run, Run) else Run(run) for run in several]


def _is_span(span: Any) -> bool:
    return isinstance(span, list) and len(span) == 2 and all(isinstance(edge, int | float) for edge in span)


def _served(runs: Sequence[Run]) -> list[str]:
    """Return ``<place>/<run id>`` of each run, by which a page asks the server while this kernel cannot answer."""
    places = [(place_of(run.folder.path.parent), run.id) for run in runs]
    return [f"{place}/{run_id}" for place, run_id in places if place]


def publish(bundle: dict[str, Any], display_id: str | None = None, update: bool = False) -> None:
    """Put a MIME bundle into the output of the present cell, or replace what stands under its display id.

    Args:
        update: replace, wherever it was first shown.
    """
    if InteractiveShell.initialized():
        display(bundle, raw=True, display_id=display_id, **({"update": True} if update else {}))
    elif not update:
        # IPython's own fallback prints the whole mapping, the bytes of a PNG included.
        print(bundle["text/plain"])
