"""A race or a sweep while it goes on: what it says, one of its pictures, tables, and buttons that reach it."""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets
import traitlets

from workbench.base.errors import WorkbenchError
from workbench.base.text import many
from workbench.experiments.experiment import Experiment
from workbench.experiments.experiment_folder import ENDED
from workbench.experiments.snapshot import Pick, Shown
from workbench.jupyter.bundles import BundledWidget, code, style
from workbench.jupyter.watch.figures import bundle_of

SECONDS = 2.0
"""Between two looks."""
HEIGHT, LEAST_HEIGHT = 370, 240
"""Height of a picture in pixels: where the page does not say what room there is, and where there is little."""
THREAD = "workbench-experiment-panel"


class ExperimentControls(BundledWidget):
    """The words of an experiment and its buttons; the page asks by messages.

    Attributes:
        shown: title, status, lines, titles of the pictures, picks; what an :class:`ExperimentPanel` tells.
        whole: with a heading, sentences and ways to cancel and to close; else the choice of pictures and picks alone.
        figure: key of the picture. numbers: whether it stands there as a table, too.
        pick: key of the setting or run that the buttons are about; see :class:`workbench.experiments.snapshot.Pick`.
        answer: what became of what was asked; complaint: why it cannot be shown.
    """

    _code = code("experiment")
    _css = style("experiment")

    shown = traitlets.Dict().tag(sync=True)
    whole = traitlets.Bool(True).tag(sync=True)
    figure = traitlets.Unicode().tag(sync=True)
    numbers = traitlets.Bool(False).tag(sync=True)
    pick = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    answer = traitlets.Unicode().tag(sync=True)
    complaint = traitlets.Unicode().tag(sync=True)


class ExperimentPanel(ipywidgets.VBox):
    """Follows an experiment until it is closed.

    Args:
        experiment: the race or sweep.
        whole: see :class:`ExperimentControls`.
        on: what the page's buttons do: ``close``; ``report``, where one can be had; ``watch`` and ``compose`` with a
            pick; ``dot`` with a setting that was clicked in a picture: of a run there, ``watch`` is asked.
        follow: look again by itself; else when :meth:`refresh` is called.
        first: called before each look: what else tells how it stands, so that it is not behind the picture.
    """

    def __init__(
        self,
        experiment: Experiment[Any, Any],
        on: Mapping[str, Callable[..., Any]],
        *,
        whole: bool = True,
        follow: bool = True,
        first: Callable[[], object] = lambda: None,
    ) -> None:
        self.experiment, self._on, self._first = experiment, on, first
        # Until somebody picks, the best so far is meant.
        self._picked = False
        # None until a page says which: Plotly's megabytes would keep the page from drawing the controls.
        self._dark: bool | None = None
        self._room = HEIGHT
        self._drawn = ""
        self._picks: dict[str, Pick] = {}
        self._closed, self._wake = threading.Event(), threading.Event()
        self.controls = ExperimentControls(whole=whole)
        self.output = ipywidgets.Output()
        self.numbers, self.table = ipywidgets.HTML(), ipywidgets.HTML()
        self.output.add_class("lab-experiment-figure")
        for part in (self.numbers, self.table):
            part.add_class("lab-experiment-table")
        parts = [self.controls, self.output, self.numbers, *([self.table] if whole else [])]
        super().__init__(parts)
        self.add_class("lab-experiment")
        self.controls.on_msg(lambda _widget, content, _buffers: self._heard(content))
        if follow:
            arguments = (weakref.ref(self), self._wake, self._closed)
            threading.Thread(target=_follow, args=arguments, name=THREAD, daemon=True).start()

    def refresh(self) -> bool:
        """Look at it now and show what is new; returns whether it has ended, and its last run, too."""
        try:
            ended = self.experiment.ended()
            self._first()
            found = self.experiment.shown()
            self._show(found)
        except (WorkbenchError, RuntimeError, OSError) as error:
            # Deleted, or its drivers end without a word.
            self.controls.complaint = str(error)
            return False
        self.controls.complaint = ""
        # Runs of one that was cancelled take a step, or what they prepare, until they have stopped.
        return ended and not found.going

    def close(self) -> None:
        """Stop following and leave the page; the experiment goes on."""
        # ipywidgets closes widgets when they are collected, also one whose construction failed.
        if hasattr(self, "_closed"):
            self._closed.set()
            self._wake.set()
            for part in self.children:
                part.layout.close()
                part.close()
        super().close()

    def _show(self, found: Shown) -> None:
        controls = self.controls
        told = {
            "noun": self.experiment.folder.noun, "title": found.title,
            "status": found.status, "ended": found.status in ENDED,
            "lines": [*found.lines], "more": [*found.more],
            "figures": [[key, each.title] for key, each in found.drawings.items()],
            "picks": [[each.key, each.title] for each in found.picks],
            "picked": "run" if found.picks and all(each.single for each in found.picks) else "point",
            "report": "report" in self._on,
        }  # fmt: skip
        self._picks = {each.key: each for each in found.picks}
        with controls.hold_sync():
            if controls.figure not in found.drawings:
                controls.figure = next(iter(found.drawings))
            if found.picks and (controls.pick not in self._picks or not self._picked):
                controls.pick = found.picks[0].key if found.best is None else found.best
            controls.shown = told
        self._fill(self.table, found.table)
        self._fill(self.numbers, found.drawings[controls.figure].numbers() if controls.numbers else "")
        self._draw(found)

    @staticmethod
    def _fill(part: ipywidgets.HTML, text: str) -> None:
        # It scrolls sideways where it is wide, and the keyboard must get there.
        part.value, part.tabbable = text, bool(text)

    def _draw(self, found: Shown) -> None:
        if self._dark is None:
            return
        from workbench.plots.figure import template

        figure = found.drawings[self.controls.figure].figure()
        if self._dark:
            figure.update_layout(template=template(dark=True))
        figure.update_layout(height=max(LEAST_HEIGHT, min(figure.layout.height or self._room, self._room)))
        bundle = bundle_of(figure)
        if (drawn := json.dumps(bundle)) != self._drawn:
            self._drawn = drawn
            self.output.outputs = ({"output_type": "display_data", "data": bundle, "metadata": {}},)

    def _heard(self, content: Any) -> None:
        """Do what the page asks for. Returns at once: drawing goes to the thread that follows."""
        message = content if isinstance(content, dict) else {}
        verb, controls = message.get("do"), self.controls
        if verb == "look":
            self._dark, room = message.get("dark") is True, message.get("room")
            self._room = room if isinstance(room, int) and room > 0 else HEIGHT
        elif verb == "figure" and message.get("figure") in dict(controls.shown.get("figures", [])):
            controls.figure = message["figure"]
        elif verb == "numbers":
            controls.numbers = message.get("on") is True
        elif verb in ("pick", "dot") and (pick := self._picks.get(str(message.get("pick")))) is not None:
            controls.pick, self._picked = pick.key, True
            if verb == "dot":
                self._do("watch" if pick.single else verb)
        elif verb == "cancel":
            threading.Thread(target=self._cancel, name=f"{THREAD}-cancel", daemon=True).start()
        elif verb in ("watch", "compose", "close", "report"):
            self._do(verb)
        self._wake.set()

    def _do(self, verb: str) -> None:
        pick = self.controls.pick
        try:
            if verb == "close":
                self._on["close"]()
            elif verb == "report":
                self.controls.answer = str(self._on["report"]() or "")
            elif pick is not None:
                self.controls.answer = str(self._on[verb](pick) or "")
        except Exception as error:  # the panel is where the user who pressed looks
            self.controls.answer = str(error) or type(error).__name__

    def _cancel(self) -> None:
        try:
            stopped = len(self.experiment.cancel())
            # A request: they end after their step, those that have taken one with a checkpoint.
            runs = f"{many(stopped, 'run')} told to stop" if stopped else "nothing ran"
            self.controls.answer = f"cancelled: {runs}"
        except (WorkbenchError, OSError) as error:
            self.controls.answer = str(error)
        self._wake.set()


def _follow(panel: weakref.ref[ExperimentPanel], wake: threading.Event, closed: threading.Event) -> None:
    while not closed.is_set():
        alive = panel()
        # Without a reference, so that one that nobody has any more is not read for ever.
        if alive is None:
            return
        try:
            ended = alive.refresh()
        except Exception as error:  # the thread goes on, and the page is where a user would see it
            alive.controls.complaint, ended = f"{type(error).__name__}: {error}", False
        del alive
        wake.wait(None if ended else SECONDS)
        wake.clear()
