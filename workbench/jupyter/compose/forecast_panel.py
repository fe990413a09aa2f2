"""The forecast beside the knobs: what the recipe will take here, and forecast beside measured for a run."""

from __future__ import annotations

import html
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ipywidgets

from workbench.base.errors import WorkbenchError
from workbench.client.run import Run
from workbench.jupyter.bundles import BundledWidget, code, style
from workbench.jupyter.compose.forecasts import Forecasts, NotMeasuredError, OvertakenError, settled_since
from workbench.jupyter.compose.inputs import Shape, make_input
from workbench.jupyter.compose.knob_notes import Note
from workbench.jupyter.compose.side_panel import SidePanel
from workbench.jupyter.feed.latest import Latest
from workbench.jupyter.light_widgets import Light, introduce, light
from workbench.plots.forecast_compared import beside_line, compared
from workbench.plots.forecast_facts import doubt
from workbench.plots.forecast_page import STYLE, comparison_html, details_html, headline_html, line_html
from workbench.recipes.recipe import Recipe
from workbench.store.view import RunView
from workbench.telemetry.streams import TelemetryReader

REFRESH_SECONDS = 5.0
"""Between two readings of a run that is compared while it goes on."""
PATIENCE_SECONDS = 3.0
"""For a forecast when Launch is pressed: one takes a quarter of a second, the first of a kernel a second or two."""
MEASURING_SECONDS = 20
"""Time that measuring takes on a machine that does nothing else."""
_WAITING = "The forecast appears as soon as the recipe can run."
_WORKING = "Working out the forecast (a second or two)."
_MEASURING = "Measuring this machine, once"
# Two lines of the Lab's box, above its button.
_ASK = f"Not measured for this yet. Runs train now: measuring ({MEASURING_SECONDS} s) slows them and errs high."
_NO_FORECAST = "not forecast at its launch, and this machine has not been measured for such runs"


class _Style(Light, BundledWidget):
    """Brings the style sheet; invisible."""

    _code = code("forecast_panel")
    _css = STYLE + style("forecast_panel")


class ForecastPanel(ipywidgets.VBox):
    """Parameters, FLOPs, memory, speed, time and cost of a recipe, before it is run.

    Nothing here blocks: forecasts are made in a thread, the latest recipe wins, and the numbers of the one before stay
    (dimmed) until the new ones are there. A machine that has not been measured yet is
    measured once in the background, but never unasked while runs train on it.

    Args:
        runs_dir: the runs folder in which to look for runs that train; else ``$WORKBENCH_RUNS``, else ``./runs``.
        opened: with cost and pictures from the start; else one sentence, and a button that opens the rest.
        aside: shows the rest elsewhere (None: not any more); without it, it opens below the sentence.
        judged: told a recipe's hash and what speaks against it, as soon as its forecast is there; nothing where
            nothing does, or where nobody knows.

    Example:
        >>> from workbench import presets
        >>> panel = ForecastPanel()
        >>> panel.show(presets.fast())  # doctest: +SKIP
    """

    def __init__(
        self,
        runs_dir: str | Path | None = None,
        opened: bool = False,
        aside: Callable[[SidePanel | None], None] | None = None,
        judged: Callable[[str, str], None] = lambda _recipe, _why: None,
    ) -> None:
        self._judged = judged
        self._recipe: Recipe | None = None
        self._found: dict[str, Any] | None = None
        self._found_of = ""
        self._forecasts = Forecasts(runs_dir, self._check_wanted)
        self._sharing = 0
        # Whether the button is offered, for the recipe and for the run.
        self._offered = self._offered_for_run = False
        self._shown: list[ipywidgets.Widget] = []
        self._opened = False
        self._run: Run | None = None
        # Of the run with this id.
        self._reader: tuple[str, TelemetryReader] | None = None
        self._timer: threading.Timer | None = None
        self._ahead: Latest[Recipe] = Latest(self._forecast, "workbench-forecast")
        self._beside: Latest[Run] = Latest(self._put_beside, "workbench-compare")
        # What is shown is set by the page's thread and by two of ours.
        self._lock = threading.RLock()
        self.line, self.beside, self.headline, self.details, self.comparison, self.status = (
            light(ipywidgets.HTML) for _ in range(6)
        )
        self.line.add_class("wb-forecast-line")
        self.beside.add_class("wb-forecast-beside")
        self.price = make_input(
            Shape("float", optional=True, low=0.0), "price per hour",
            "what an hour of the device costs, in any currency; empty: no cost is shown", None, "linear",
        )  # fmt: skip
        self.price.changed = self._draw
        self.measure = light(
            ipywidgets.Button,
            description="Measure this machine",
            icon="tachometer",
            tooltip=f"takes about {MEASURING_SECONDS} s, once",
        )
        self.measure.on_click(lambda _button: self._measure())
        self.more = light(
            ipywidgets.ToggleButton,
            value=opened,
            description="Details",
            tooltip="cost, memory by part, schedules and layers as pictures",
        )
        self.more.add_class("wb-forecast-more")
        self.more.observe(lambda _change: self._arrange(), names="value")
        self._top = light(ipywidgets.Box, [self.more, self.line])
        self._row = light(ipywidgets.Box, [self.price.widget])
        self._top.add_class("wb-forecast-top")
        self._row.add_class("wb-forecast-row")
        self._note = Note(self._row)
        self.sheet = light(ipywidgets.VBox, [self.headline, self._row, self.comparison, self.details])
        super().__init__([])
        for whole in (self, self.sheet):
            whole.add_class("wb-forecast")
        self._aside = aside
        self._panel = SidePanel(lambda: setattr(self.more, "value", False), "Forecast in detail", self.sheet)
        self._style = _Style()
        introduce(self._top, self.status, self.measure, self.beside)
        self._say("")
        self._arrange()

    def show(self, recipe: Recipe | None) -> None:
        """Forecast this recipe; returns at once.

        Args:
            recipe: what would be run; None where the knobs make none at the moment: the last numbers stay, dimmed.
        """
        with self._lock:
            if recipe is not None and self._is_composed(recipe.hash):
                # Its own numbers may have been dimmed by knobs that were none; another recipe's are still waited for.
                self._dim(self._found_of != recipe.hash)
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
            known = self._forecasts.kept.get(recipe.hash)
            if known is not None:
                self._say("")
                self._take(recipe, known)
            # What is provisional may have been settled by a run meanwhile.
            if known is None or known.get("provisional"):
                self._ahead.ask(recipe)

    def settle(self, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until what was asked for last is judged; not longer, and not for a machine that is being measured."""
        until = time.monotonic() + seconds
        while not self._ahead.wait(0.02) and not self._forecasts.measuring and time.monotonic() < until:
            pass

    def share(self, sharing: int) -> None:
        """Say that so many runs train on the machine now."""
        with self._lock:
            if sharing != self._sharing:
                self._sharing = sharing
                self._draw()

    def compare(self, run: Run | None) -> None:
        """Show forecast and measured side by side for a run that has begun or ended; returns at once.

        Where this panel has the forecast of the run's recipe at hand, it is kept in the run's folder.

        Args:
            run: None takes the comparison away.
        """
        with self._lock:
            self._run = run
        if run is None:
            with self._lock:
                self._reader = None
                self.beside.value = self.comparison.value = ""
                self._offered_for_run = False
                self._arrange()
                self._draw()
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
            for part in (
                *self._row.children, *self.sheet.children, *self._top.children, *self._panel.children, self._style,
                self._top, self._panel, self.beside, self.status, self.measure,
            ):  # fmt: skip
                part.close()
        super().close()

    def _measure(self) -> None:
        with self._lock:
            self._forecasts.allowed = True
            # Only one of them has to measure: the other then finds the rates, or offers the button again.
            if self._offered_for_run and self._run is not None:
                self._beside.ask(self._run)
            elif self._recipe is not None:
                self._ahead.ask(self._recipe)

    def _forecast(self, recipe: Recipe) -> None:
        """In the thread: the forecast of a recipe, or why there is none; errors belong where the user looks."""
        found, wrong, button = None, "", False
        try:
            found = self._forecasts.of_recipe(recipe)
        except NotMeasuredError:
            self._say(_ASK, button=True)
        except OvertakenError:
            self._say("")
        except WorkbenchError as error:
            wrong, button = str(error), not self._forecasts.kept
        except Exception as error:
            wrong = f"no forecast: {type(error).__name__}: {error}"
        else:
            self._say("")
        self._take(recipe, found, wrong, button)

    def _check_wanted(self, recipe: Recipe, composed: bool, seconds: float) -> None:
        """End a measurement that is for another mode than what is composed by now; a knob of the same keeps it."""
        usual = (
            f"of about {MEASURING_SECONDS} s"
            if seconds <= MEASURING_SECONDS
            else f"s so far ({MEASURING_SECONDS} if idle)"
        )
        text = f"{_MEASURING} for runs like this: {int(seconds)} {usual}. The forecast follows."
        with self._lock:
            present, closed = self._recipe, self.comm is None
            if text not in self.status.value:
                self._say(text)
        # None: knobs in between two recipes, of which the next may be of the same mode.
        other = composed and present is not None and present.hash != recipe.hash
        if closed or (other and present is not None and _rates_of(present) != _rates_of(recipe)):
            raise OvertakenError

    def _is_composed(self, recipe: str) -> bool:
        """Return whether nothing else than the recipe with this hash was composed since; ask with the lock held."""
        return self._recipe is not None and recipe == self._recipe.hash

    def _take(self, recipe: Recipe, found: dict[str, Any] | None, wrong: str = "", button: bool = False) -> None:
        """Show a recipe's forecast, or what is wrong with it, and let it be judged; ``button``: offer to measure."""
        with self._lock:
            composed = self._is_composed(recipe.hash)
            # While a slider moves, what was overtaken moves with it, but takes no place of the right numbers.
            if found is not None and (composed or not self._is_composed(self._found_of)):
                self._found, self._found_of = found, recipe.hash
                self._draw()
            # The one composed by now may have been judged meanwhile.
            if not composed:
                return
            if found is not None:
                self._dim(False)
            if wrong:
                self._say(wrong, error=True, button=button)
            self._judged(recipe.hash, "" if found is None else doubt(found))

    def _draw(self) -> None:
        if self._found is None:
            return
        price = self.price.get()
        wrong = price is not None and (not isinstance(price, (int, float)) or not price >= 0)
        known = None if wrong else price
        # Both stand in one small box, which has no room for the whole of either.
        self.line.value = line_html(self._found, known, self._sharing, brief=self._crowded)
        self.headline.value = headline_html(self._found, known, self._sharing)
        self.details.value = details_html(self._found)
        self._note.say("the price must be a number of 0 or more, or empty" if wrong else "")
        self._arrange()

    @property
    def _crowded(self) -> bool:
        """Return whether more than the forecast has to stand in the Lab's four lines."""
        return bool(self.beside.value) or self._offered

    def _dim(self, dim: bool) -> None:
        for part in (self.line, self.headline, self.details):
            (part.add_class if dim else part.remove_class)("wb-forecast-old")

    def _say(self, text: str, *, error: bool = False, button: bool = False) -> None:
        kind, role = ("wb-wrong", "alert") if error else ("wb-soft", "status")
        with self._lock:
            self.status.value = f"<span class='{kind}' role='{role}'>{html.escape(text)}</span>" if text else ""
            self._offered, self._failed = button, error
            self._draw()
            self._arrange()

    def _arrange(self) -> None:
        with self._lock:
            known, opened = self._found is not None, self.more.value
            offered = (self._offered or self._offered_for_run) and not self._forecasts.measuring
            wanted = (
                (self._style, True),
                (self._top, known),
                (self.status, bool(self.status.value)),
                (self.measure, offered),
                (self.beside, bool(self.beside.value)),
                (self.sheet, known and opened and self._aside is None),
            )
            shown = [widget for widget, here in wanted if here]
            # Assigning children draws them anew, and the box one is typing in would lose the focus.
            if self._shown != shown:
                self._shown, self.children = shown, tuple(shown)
            if self._aside is not None and (known and opened) != self._opened:
                self._opened = known and opened
                self._aside(self._panel if self._opened else None)

    def _put_beside(self, run: Run) -> None:
        """In the thread: read the run, put its forecast beside it, and again while it goes on."""
        try:
            found = self._forecasts.of_run(run)
            # Another run may have been picked while the forecast of the one before was made.
            held = self._reader
            if held is None or held[0] != run.id:
                held = self._reader = run.id, TelemetryReader(run.folder.telemetry)
            view = RunView.read(run.folder, held[1])
            # One that was stopped, failed or is lost may be resumed, by whomever.
            rows, again, missing = compared(found, view), view.status != "finished", False
            line = beside_line(rows, view, self._sharing)
            table = comparison_html(rows, view.name) if line else ""
        except (NotMeasuredError, OvertakenError):
            line, again, missing, table = _NO_FORECAST, False, True, ""
        # WorkbenchError speaks for itself, of anything else the type says the most.
        except Exception as error:
            line = str(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}"
            again, missing, table = False, False, f"<p class='wb-wrong'>{html.escape(line)}</p>"
        with self._lock:
            if _MEASURING in self.status.value and not self._forecasts.measuring:
                self._say("")
            if self._run is None or run.id != self._run.id:
                return
            self._offered_for_run = missing
            text = html.escape(f"{run.name}: {line}")
            self.beside.value = f"<p class='wb-soft' title='{text}'>{text}</p>" if line else ""
            self.comparison.value = table
            self._arrange()
            self._draw()
            self._take_up_plan()
            if self._timer is not None:
                self._timer.cancel()
            if again and self.comm is not None:
                self._timer = threading.Timer(REFRESH_SECONDS, _again, (weakref.ref(self), run))
                self._timer.daemon = True
                self._timer.start()

    def _take_up_plan(self) -> None:
        """Forecast the composed recipe again once a run has found what it left open."""
        recipe = self._recipe
        known = None if recipe is None else self._forecasts.kept.get(recipe.hash)
        if recipe is not None and known and settled_since(known, recipe):
            self._ahead.ask(recipe)


def _rates_of(recipe: Recipe) -> Any:
    """Return what decides which rates of the machine a forecast needs."""
    return recipe.engine().mode._replace(compiled=False)


def _again(panel: weakref.ref[ForecastPanel], run: Run) -> None:
    # Weak: a panel that nobody has any more must not be kept alive by a run that takes days.
    alive = panel()
    if alive is not None:
        alive._beside.ask(run)
