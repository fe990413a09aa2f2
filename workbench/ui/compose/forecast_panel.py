"""The forecast beside the knobs: what the recipe will take here, and forecast beside measured for a run."""

from __future__ import annotations

import contextlib
import html
import threading
import time
import weakref
from collections import OrderedDict
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets

from workbench.errors import WorkbenchError
from workbench.live.latest import Latest
from workbench.plots.forecast_facts import beside_line, compared, whole_forecast
from workbench.plots.forecast_page import STYLE, comparison_html, details_html, headline_html, line_html
from workbench.recipe import Recipe
from workbench.runs.catalogue.run_list import runs
from workbench.runs.folder import read_json, write_json
from workbench.runs.run import Run
from workbench.runs.view import RunView
from workbench.telemetry import TelemetryReader
from workbench.ui.bundles import script, style
from workbench.ui.compose.inputs import Shape, make_input
from workbench.ui.compose.knob_notes import Note

KEPT = 16
"""Forecasts kept by recipe, so that a launch finds the one that was on the screen."""
REFRESH_SECONDS = 5.0
"""Between two readings of a run that is compared while it goes on."""
TRAINING = ("starting", "running")
"""Statuses of runs that a measurement would disturb, and that would disturb it."""
_WAITING = "The forecast appears as soon as the recipe can run."
_WORKING = "Working out the forecast."
_MEASURING = "Measuring this machine once (about 20 s); the forecast follows."
_ASK = (
    "This machine has not been measured yet, and runs are training: measuring takes about 20 s, slows them meanwhile, "
    "and finds the machine slower than it is."
)
_NO_FORECAST = (
    "No forecast was made before this run, and this machine has not been measured in its mode "
    "(device, precision, threads)."
)


class _Later(Exception):
    """The machine would have to be measured, which somebody has to ask for."""


class _Overtaken(Exception):
    """Another recipe is composed by now, for which other rates are needed; or nobody has this panel any more."""


class _Style(anywidget.AnyWidget):
    """Brings the style sheet; invisible."""

    _esm = script("forecast_panel")
    _css = STYLE + style("forecast_panel")


class ForecastPanel(ipywidgets.VBox):
    """Parameters, FLOPs, memory, speed, time and cost of a recipe, before it is run.

    Nothing here blocks: forecasts are made in a thread, the latest recipe wins, and the numbers of the one before stay
    (dimmed) until the new ones are there. A machine that has not been measured yet is measured once in the background,
    but never unasked while runs train on it.

    Args:
        runs_dir: the runs folder in which to look for runs that train; else ``$WORKBENCH_RUNS``, else ``./runs``.
        opened: with cost and pictures from the start; else one sentence, and a button that opens the rest.

    Example:
        >>> from workbench import presets
        >>> panel = ForecastPanel()
        >>> panel.show(presets.fast())  # doctest: +SKIP
    """

    def __init__(self, runs_dir: str | Path | None = None, opened: bool = False) -> None:
        self._runs_dir = runs_dir
        self._recipe: Recipe | None = None
        self._found: dict[str, Any] | None = None
        self._kept: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._allowed = False
        # Whether the button is offered, for the recipe and for the run.
        self._offered = self._offered_for_run = False
        self._shown: list[ipywidgets.Widget] = []
        self._run: Run | None = None
        self._reader: TelemetryReader | None = None
        self._timer: threading.Timer | None = None
        # Of the run that is compared, where none was kept with it.
        self._afterwards: tuple[str, dict[str, Any]] = ("", {})
        self._ahead: Latest[Recipe] = Latest(self._forecast, "workbench-forecast")
        self._beside: Latest[Run] = Latest(self._put_beside, "workbench-compare")
        # What is shown is set by the page's thread and by two of ours.
        self._lock = threading.RLock()
        self.line, self.headline, self.details, self.comparison, self.status = (ipywidgets.HTML() for _ in range(5))
        self.line.add_class("wb-forecast-line")
        self._sentence, self._compared_line, self._compared_table = "", "", ""
        self.price = make_input(
            Shape("float", optional=True, low=0.0), "price per GPU-hour",
            "what an hour of the device costs, in any currency; empty: no cost is shown", None, "linear",
        )  # fmt: skip
        self.price.changed = self._draw
        self.measure = ipywidgets.Button(description="Measure this machine", icon="tachometer")
        self.measure.on_click(lambda _button: self._measure())
        self.more = ipywidgets.ToggleButton(
            value=opened, description="Details", tooltip="cost, memory by part, schedules and layers as pictures"
        )
        self.more.add_class("wb-forecast-more")
        self.more.observe(lambda _change: self._arrange(), names="value")
        self._top = ipywidgets.HBox([self.line, self.more])
        self._row = ipywidgets.Box([self.price.widget])
        for row in (self._top, self._row):
            row.add_class("wb-forecast-row")
        self._note = Note(self._row)
        super().__init__([])
        self.add_class("wb-forecast")
        self._style = _Style()
        self._parts = (
            self._style, self._top, self.line, self.more, self.headline, self.status, self.measure, self._row,
            self.details, self.comparison,
        )  # fmt: skip
        self._say("")
        self._arrange()

    def show(self, recipe: Recipe | None) -> None:
        """Forecast this recipe; returns at once.

        Args:
            recipe: what would be run; None where the knobs make none at the moment: the last numbers stay, dimmed.
        """
        with self._lock:
            if recipe is not None and self._recipe is not None and recipe.hash == self._recipe.hash:
                self._dim(False)
                return
            self._recipe = recipe
            self._dim(True)
            if self._failed:
                # An error goes with the recipe that caused it.
                self._say("")
            if self._found is None and not self._offered:
                # Its first imports take a second or two; nothing at all would look broken.
                self._say(_WAITING if recipe is None else _WORKING)
            if recipe is None:
                return
            known = self._kept.get(recipe.hash)
            if known is not None:
                self._say("")
                self._take(recipe, known)
            else:
                self._ahead.ask(recipe)

    def compare(self, run: Run | None) -> None:
        """Show forecast and measured side by side for a run that has begun or ended; returns at once.

        Where this panel has the forecast of the run's recipe at hand, it is kept in the run's folder.

        Args:
            run: None takes the comparison away.
        """
        with self._lock:
            if run is None or self._run is None or run.id != self._run.id:
                self._reader = None
            self._run = run
        if run is None:
            self._compared_line = self._compared_table = ""
            self._offered_for_run = False
            self._arrange()
        else:
            self._beside.ask(run)

    def close(self) -> None:
        """Leave the page and begin no further forecast."""
        # ipywidgets closes widgets when they are collected, also one whose construction failed.
        if hasattr(self, "_beside"):
            self._ahead.close()
            self._beside.close()
            if self._timer is not None:
                self._timer.cancel()
            # Each is known to ipywidgets by itself, and would hold this panel for as long as the kernel lives.
            for part in (*self._row.children, *self._parts):
                part.close()
        super().close()

    def _measure(self) -> None:
        with self._lock:
            self._allowed = True
            # Only one of them has to measure: the other then finds the rates, or offers the button again.
            if self._offered_for_run and self._run is not None:
                self._beside.ask(self._run)
            elif self._recipe is not None:
                self._ahead.ask(self._recipe)

    def _forecast(self, recipe: Recipe) -> None:
        """In the thread: the forecast of a recipe, or why there is none."""
        found = self._safely(recipe)
        if found is not None:
            with self._lock:
                self._kept[recipe.hash] = found
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
                # Of a recipe that was overtaken as well: while a slider moves, numbers move with it.
                self._take(recipe, found)

    def _forecast_fields(self, recipe: Recipe, unasked: bool) -> dict[str, Any]:
        # Here: it brings the trainer's modules along, a second of imports that no page must wait for.
        from workbench.forecast import forecast

        measuring: list[str] = []

        def slow(line: str) -> None:
            self._slow(unasked)
            measuring.append(line)

        try:
            return forecast(recipe, say=slow, poll=lambda: self._check_wanted(recipe, unasked)).to_dict()
        finally:
            if measuring:
                self._say("")

    def _check_wanted(self, recipe: Recipe, composed: bool) -> None:
        """End a measurement that is for another mode than what is composed by now; a knob of the same keeps it."""
        with self._lock:
            present, closed = self._recipe, self.comm is None
        # None: knobs in between two recipes, of which the next may be of the same mode.
        other = composed and present is not None and present.hash != recipe.hash
        if closed or (other and present is not None and _rates_of(present) != _rates_of(recipe)):
            raise _Overtaken

    def _slow(self, unasked: bool) -> None:
        """The machine is about to be measured: say so, or refuse where nobody has asked."""
        # One click, one measurement: of another mode, later, under other runs, it is asked again.
        allowed, self._allowed = self._allowed, False
        if not allowed and not (unasked and not any(run.status in TRAINING for run in runs(self._runs_dir))):
            raise _Later
        self._say(_MEASURING)

    def _safely(self, recipe: Recipe) -> dict[str, Any] | None:
        """The forecast of the recipe to show; errors belong where the user looks."""
        try:
            found = self._forecast_fields(recipe, unasked=True)
        except _Later:
            self._say(_ASK, button=True)
        except _Overtaken:
            pass
        except WorkbenchError as error:
            self._fail(recipe, str(error), button=not self._kept)
        except Exception as error:
            self._fail(recipe, f"no forecast: {type(error).__name__}: {error}")
        else:
            self._say("")
            return found
        return None

    def _take(self, recipe: Recipe, found: dict[str, Any]) -> None:
        with self._lock:
            self._found = found
            self._draw()
            if self._recipe is not None and recipe.hash == self._recipe.hash:
                self._dim(False)

    def _draw(self) -> None:
        if self._found is None:
            return
        price = self.price.get()
        wrong = price is not None and (not isinstance(price, (int, float)) or not price >= 0)
        known = None if wrong else price
        self._sentence, self.headline.value = line_html(self._found, known), headline_html(self._found, known)
        self.details.value = details_html(self._found)
        self._note.say("the price must be a number of 0 or more, or empty" if wrong else "")
        self._arrange()

    def _dim(self, dim: bool) -> None:
        for part in (self.line, self.headline, self.details):
            (part.add_class if dim else part.remove_class)("wb-forecast-old")

    def _fail(self, recipe: Recipe, text: str, *, button: bool = False) -> None:
        """Say what is wrong with a recipe, while it is the one composed."""
        with self._lock:
            if self._recipe is not None and recipe.hash == self._recipe.hash:
                self._say(text, error=True, button=button)

    def _say(self, text: str, *, error: bool = False, button: bool = False) -> None:
        kind, role = ("wb-wrong", "alert") if error else ("wb-soft", "status")
        with self._lock:
            self.status.value = f"<span class='{kind}' role='{role}'>{html.escape(text)}</span>" if text else ""
            self._offered, self._failed = button, error
            self._arrange()

    def _arrange(self) -> None:
        with self._lock:
            known, opened = self._found is not None, self.more.value
            self.line.value = "<strong>Forecast</strong>" if opened else self._sentence
            self.comparison.value = self._compared_table if opened else self._compared_line
            # Above the details: somebody has just selected a run.
            wanted = (
                (self._style, True),
                (self._top, known),
                (self.headline, known and opened),
                (self.status, bool(self.status.value)),
                (self.measure, self._offered or self._offered_for_run),
                (self._row, known and opened),
                (self.comparison, bool(self.comparison.value)),
                (self.details, known and opened),
            )
            shown = [widget for widget, here in wanted if here]
            # Assigning children draws them anew, and the box one is typing in would lose the focus.
            if self._shown != shown:
                self._shown, self.children = shown, tuple(shown)

    def _put_beside(self, run: Run) -> None:
        """In the thread: read the run, put its forecast beside it, and again while it goes on."""
        try:
            found = self._forecast_of(run)
            if self._reader is None:
                self._reader = TelemetryReader(run.folder.telemetry)
            view = RunView.read(run.folder, self._reader)
            rows, again, missing = compared(found, view), not view.final, False
            table, line = comparison_html(rows, view.name), beside_line(rows, view.final)
        except _Later:
            line, again, missing, table = _NO_FORECAST, False, True, ""
        # WorkbenchError speaks for itself, of anything else the type says the most.
        except Exception as error:
            line = str(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}"
            again, missing, table = False, False, f"<p class='wb-wrong'>{html.escape(line)}</p>"
        with self._lock:
            if self._run is None or run.id != self._run.id:
                return
            self._offered_for_run = missing
            self._compared_line = f"<p class='wb-soft'>{html.escape(f'{run.name}: {line}')}</p>"
            self._compared_table = table or self._compared_line
            self._arrange()
            if self._timer is not None:
                self._timer.cancel()
            if again and self.comm is not None:
                self._timer = threading.Timer(REFRESH_SECONDS, _again, (weakref.ref(self), run))
                self._timer.daemon = True
                self._timer.start()

    def _forecast_of(self, run: Run) -> dict[str, Any]:
        """The forecast kept with a run, else of its recipe now; the one at hand is kept with it."""
        known = whole_forecast(read_json(run.folder.forecast))
        if known is not None:
            return known
        recipe = run.recipe
        found = self._kept.get(recipe.hash)
        if found is not None:
            # A forecast that cannot be kept can still be shown: a read-only folder, a full disk.
            with contextlib.suppress(OSError):
                write_json(run.folder.forecast, {**found, "made": time.time()}, durable=False)
            return found
        if self._afterwards[0] != run.id:
            # Looking at a run must not start a measurement that nobody has asked for.
            self._afterwards = run.id, self._forecast_fields(recipe, unasked=False)
        return self._afterwards[1]


def _rates_of(recipe: Recipe) -> Any:
    """What decides which rates of the machine a forecast needs."""
    return recipe.engine().mode._replace(compiled=False)


def _again(panel: weakref.ref[ForecastPanel], run: Run) -> None:
    # Weak: a panel that nobody has any more must not be kept alive by a run that takes days.
    alive = panel()
    if alive is not None:
        alive._beside.ask(run)
