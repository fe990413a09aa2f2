"""The Lab: compose a recipe on the left and see its forecast, watch runs on the right, all runs below."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ipywidgets
import traitlets

from workbench.base.errors import RunError
from workbench.client.fork import fork
from workbench.client.fork_point import ForkPoint
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.experiments.race.race import Race
from workbench.jupyter import cell_widgets
from workbench.jupyter.compose.composer import Composer
from workbench.jupyter.compose.composition import State
from workbench.jupyter.compose.forecast_panel import ForecastPanel
from workbench.jupyter.compose.forecasts import TRAINING
from workbench.jupyter.compose.sources import RUN, default_recipe, recipe_of
from workbench.jupyter.headless import headless
from workbench.jupyter.lab.experiments import LabExperiments
from workbench.jupyter.lab.forking import Forking
from workbench.jupyter.lab.frame import Frame
from workbench.jupyter.lab.held_widgets import close_held
from workbench.jupyter.lab.launch_question import question, same_running
from workbench.jupyter.lab.place import HERE, Place
from workbench.jupyter.lab.race_form import RaceForm
from workbench.jupyter.lab.try_view import TryView
from workbench.jupyter.lab.without_page import html_of, text_of
from workbench.jupyter.light_widgets import light
from workbench.jupyter.page import Page
from workbench.jupyter.runs.named_experiments import name_of
from workbench.jupyter.runs.run_actions import ActionResult
from workbench.jupyter.runs.runs_table import RunsTable
from workbench.jupyter.saved_output import NOT_DRAWN, view_bundle
from workbench.jupyter.watch.monitor import Monitor, publish
from workbench.jupyter.watch.saved_picture import SavedPicture
from workbench.launchers import fork_server
from workbench.launchers.queue.outlook import training_now
from workbench.recipes import presets
from workbench.recipes.recipe import Recipe, check_recipe
from workbench.store.find import find, run_ids
from workbench.store.folder import runs_root

# Eight colours: more lines than this nobody tells apart.
WATCHED_AT_MOST = 8
HOLD_AFTER_SECONDS = 5.0
"""Before a trainer is held ready: until then the page has the cores."""
_OPEN_AGAIN = f"open the notebook in JupyterLab and run this cell again to use it. {NOT_DRAWN}"
_LAUNCHES = "train this recipe in the background (Ctrl+Enter)"
_PARTS = ("composer", "forecast", "table", "launch_button", "place", "race_button", "race_form", "forking", "frame",
          "monitor", "experiments", "try_view", "_watch")  # fmt: skip


class Lab(ipywidgets.Box):
    """Compose, launch, watch, steer and compare runs from one cell.

    The Lab holds no run: a launched one is a process of its own, so a restarted kernel needs just ``wb.Lab()`` again.

    Args:
        recipe: what the composer starts from; the preset ``fast`` by default.
        runs_dir: the runs folder; else ``$WORKBENCH_RUNS``, else ``./runs``.
        live: with forms and buttons; else a text that names the recipe and lists the runs. None: wherever there is a
            page for them, so that a notebook that papermill executes is not saved with hundreds of widgets.

    Attributes:
        composer: the forms. forecast: of what they say. table: the runs. monitor: what is watched. experiments: a race
            or sweep in its place. try_view: the watched runs are asked. Each is made when it is first asked for.
        forking: the checkpoint that the composed recipe will go on from, or none.
        kept: all that a new kernel needs to show the same again (:meth:`restore`), as JSON; follows every change.

    Example:
        >>> import workbench as wb
        >>> wb.Lab()  # doctest: +SKIP
    """

    kept = traitlets.Dict()

    def __init__(
        self, recipe: Recipe | None = None, runs_dir: str | Path | None = None, *, live: bool | None = None
    ) -> None:
        self._recipe, self._runs_dir = recipe, runs_dir
        self._live = not headless() if live is None else live
        self._displayed, self._sure, self._launched = False, "", False
        self._saved = SavedPicture(self._saved_html, publish, "while it was open")
        super().__init__()
        if recipe is not None:
            check_recipe(recipe, "Lab")
        self._given = "" if recipe is None else recipe.hash
        self.add_class("lab-root").add_class("lab-whole")
        if self._live:
            self._fill()

    def __getattr__(self, name: str) -> Any:
        # Without a page they are made for cells that use them.
        if name not in _PARTS:
            raise AttributeError(f"'Lab' object has no attribute '{name}'")
        self._fill()
        return vars(self)[name]

    def watch(self, runs: list[Run]) -> None:
        """Show these runs on the right, at most :data:`WATCHED_AT_MOST` of them."""
        self.monitor.watch(runs[:WATCHED_AT_MOST])
        self.try_view.offer(self.monitor.runs)

    def fork(self, run_id: str) -> None:
        """Open a run's recipe in the composer, to be edited and gone on with from its newest checkpoint.

        Raises:
            RunError: there is no such run, or no checkpoint that can be read.
        """
        point = self.forking.begin(find(run_id, self._runs_dir))
        self._go_on(point, point.longer())

    def edit(self, run_id: str) -> None:
        """Open a run's recipe in the composer, to be changed and launched anew; a fork is not gone on with."""
        self._no_fork()
        source = RUN + run_id
        # Not by the drop-down: it may stand on this run already, with other knobs in the forms.
        self._safely(lambda: self.composer.load(recipe_of(source, self._runs_dir), source=source))

    def restore(self, before: Mapping[str, Any]) -> None:
        """Compose, fork, watch and list as another Lab did, from its :attr:`kept`; runs that are gone are left out.

        Raises:
            RecipeError, KeyError: it is of a version whose knobs were others.
        """
        state, there = State.from_dict(before), set(run_ids(runs_root(self._runs_dir)))
        if (fork := before["fork"]) is not None:
            with contextlib.suppress(RunError):
                self.forking.begin(find(fork["run"], self._runs_dir), fork["step"])
        self.composer.restore(state)
        self.composer.show.value = before.get("view", self.composer.show.value)
        self.composer.opened = before.get("open", self.composer.opened)
        self.table.look = before.get("look", self.table.look)
        self.monitor.places = before.get("places", {})  # each run keeps its colour
        self.table.watched = [run_id for run_id in before["watched"] if run_id in there]
        self.table.experiment = before.get("experiment", "")
        self.try_view.pinned = before.get("pinned", [])
        self.place.text.value = before.get("place", HERE)

    def close(self) -> None:
        """Stop reading and leave the page, with everything in it; no run is touched."""
        cell_widgets.forget(self)
        self._saved.end()
        close_held(self)
        super().close()

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        # Run again, a cell takes its old Lab away.
        cell_widgets.shown(self)
        if not self._live:
            return text_of(self._recipe or default_recipe(), self._runs_dir)
        # Not before: a forecast measures the machine once, which takes it 20 seconds that nobody has asked for yet.
        self._displayed = True
        # Most who compose launch; once the Lab stands, a trainer loads what takes it seconds.
        fork_server.hold(HOLD_AFTER_SECONDS)
        self._composed()
        return view_bundle(self.model_id, f"{self!r}; {_OPEN_AGAIN}")

    def _ipython_display_(self) -> None:
        publish(self._repr_mimebundle_())
        if self._live:
            self._saved.show()
            self._saved.refresh()

    def __repr__(self) -> str:
        watched = f", watches {len(self.monitor.runs)}" if self._live and self.monitor.runs else ""
        return f"Lab(runs of {runs_root(self._runs_dir)}{watched})"

    def _saved_html(self) -> str:
        """Return what is watched, the recipe that is composed and the runs, without scripts."""
        picture = self.monitor.summary_html() if self.monitor.runs else ""
        return picture + html_of(self.composer.recipe, self._runs_dir)

    def _fill(self) -> None:
        """Make everything that is shown."""
        button = light(ipywidgets.Button, description="Launch", icon="rocket", button_style="primary")
        self.launch_button = button.add_class("lab-launch")
        self.launch_button.on_click(lambda _button: self._safely(self._launch))
        self.place = Place(lambda: self._safely(self.composer.settle))
        self.frame = Frame(lambda request: self._safely(lambda: self._heard(request)), self.model_id or "")
        self.forking = Forking(lambda step: self._safely(lambda: self._fork_from(step)), self._new_run_instead)
        self.composer = Composer(self._recipe, self._composed, self._runs_dir, self.forking.objections)
        self.forecast = ForecastPanel(self._runs_dir, aside=self.composer.aside, judged=self.composer.verdict.judge)
        self.forecast.add_class("lab-forecast")
        self.race_button = light(ipywidgets.Button, description="Race…").add_class("lab-race-button")
        self.race_button.on_click(lambda _button: self._safely(self._race))
        self.race_form = RaceForm(self._runs_dir, self._raced, lambda: self.table.rows)
        self.composer.dock(self.forking.bar, self.forecast, [self.launch_button, self.race_button])
        self.composer.sections[-1].add(self.place.widget)
        self.table = RunsTable(self._runs_dir, fork=self.fork, most_watched=WATCHED_AT_MOST,
            composed=lambda: self.composer.recipe.to_dict() if self.composer.recipe else None,
        )  # fmt: skip
        self.monitor = Monitor([], example=self._example, edit=self.edit)
        self.experiments = LabExperiments(self.table, self._put)
        self.try_view = TryView(self._keep, lambda: self.composer.recipe, self.table, self._put)
        # Figures that are opened from its plots stand below them.
        watched = [self.experiments, self.try_view, self.monitor, self.monitor.figures.output]
        self._watch = light(ipywidgets.VBox, watched)
        self.table.observe(lambda _change: self._safely(self._to_watch), names="watched")
        self.table.observe(lambda _change: self._keep(), names=["experiment", "look"])
        for look in (self.composer.show, *self.composer.toggles.values()):
            look.observe(lambda _change: self._keep(), names="value")
        self.monitor.observe(lambda _change: self._safely(self._added), names="places")
        self.table.observe(lambda _change: self._safely(self._selected), names="selected")
        self.table.observe(lambda _change: self._rows_changed(), names="rows")
        self._rows_changed()
        self._composed()
        # Last: from here on the page hears of every change.
        self.children = (Page(), self.frame, self._body(), self.race_form)

    def _body(self) -> ipywidgets.Widget:
        compose, below = light(ipywidgets.VBox, [self.composer]), light(ipywidgets.VBox, [self.table])
        regions = {"lab-compose": compose, "lab-watch": self._watch, "lab-below": below}
        return light(ipywidgets.Box, [each.add_class(name) for name, each in regions.items()]).add_class("lab-body")

    def _launch(self) -> None:
        self._launched = False
        edited, recipe = self.composer.edited, self.composer.taken()
        if recipe is None or self.launch_button.disabled:
            # By key, or of a text that no fork can go on with: the verdict says what is wrong.
            return
        point = self.forking.point
        # Of an edit or a text of this moment nothing is known yet, and what speaks against it is asked all the same.
        self.forecast.settle()
        same = "" if point else same_running(recipe, self.table.rows, self._runs_dir)
        asked = question(self.composer.verdict.doubt, same)
        if asked is not None and self._sure != recipe.hash:
            self._sure, self.launch_button.description = recipe.hash, asked.button
            self.composer.say(asked.said, asked.bad, asked.whole)
            return
        if point is not None:
            # Off this thread: the checkpoint is hashed before anything goes on from it.
            self.forking.hindrance = "the checkpoint is verified first"
            self._composed()
            self.table.say(ActionResult(f"forking {point.recipe.name}: {self.forking.hindrance}"))
            self.table.work(lambda: self._begin_fork(point, recipe))
        else:
            self._start(recipe)
            # What was asked is answered.
            self.composer.settle(f"applied and launched {recipe.name}" if edited else "")
        self._launched = True

    def _begin_fork(self, point: ForkPoint, recipe: Recipe) -> None:
        try:
            run = Run(fork(point.folder, point.changes(recipe), point.step))
        finally:  # refused, it is still a fork that is composed: another checkpoint may do
            self.forking.hindrance = ""
            self._composed()
        if self.forking.point is point:
            self._no_fork()
        self._started(run, "forked")

    def _race(self) -> None:
        recipe, state = self.composer.taken(), self.composer.composition.state
        if recipe is not None:
            self.race_form.offer(recipe, state.base, state.began)

    def _raced(self, race: Race) -> None:
        self.table.refresh()
        self.table.experiment = name_of(race)
        self.table.say(ActionResult(f"{race.folder.name} has begun: {self.table.folded}"))

    def _put(self, recipe: Recipe, what: str) -> None:
        """Compose a recipe of somebody else's; a fork is not gone on with."""
        self._no_fork()
        self.composer.enter(recipe.to_dict(), what)

    def _start(self, recipe: Recipe, on: str = "") -> None:
        said: list[str] = []
        self._started(launch(recipe, on or self.place.on, self._runs_dir, say=said.append), "launched", *said)

    def _started(self, run: Run, how: str, *notices: str) -> None:
        self.table.refresh()
        # After the refresh: the table drops ids that it does not know. Beside what is watched, which nobody has closed.
        gone = self.table.watch(run.id)
        self.table.selected = [run.id]
        told = "; ".join(filter(None, [*(notice.removeprefix(f"{run.id}: ") for notice in notices), gone]))
        waits = run.id if run.status == "queued" else ""
        self.table.say(ActionResult(f"{how} {run.name}" + (f": {told}" if told else ""), waits=waits))

    def _added(self) -> None:
        """A fork that the watch pane has drawn beside the others is watched as they are: the table can take it away."""
        if added := [run.id for run in self.monitor.runs if run.id not in self.table.watched]:
            self.table.refresh()
            self.table.note(self.table.watch(*added))

    def _to_watch(self) -> None:
        self.watch(self.table.runs(self.table.watched))
        self._keep()

    def _selected(self) -> None:
        chosen = self.table.runs(self.table.selected)
        self.forecast.compare(chosen[0] if len(chosen) == 1 else None)  # of several, nobody could tell which

    def _fork_from(self, step: int) -> None:
        if (before := self.forking.point) is None:
            return
        # What was edited so far is kept: only where it begins changes.
        changes = {} if self.composer.recipe is None else before.changes(self.composer.recipe)
        point = self.forking.begin(before.folder, step)
        self._go_on(point, point.recipe.with_(**changes))

    def _go_on(self, point: ForkPoint, recipe: Recipe) -> None:
        self.composer.load(recipe, point.recipe, RUN + point.folder.id)
        self._composed()

    def _new_run_instead(self) -> None:
        self._no_fork()
        self.table.say(ActionResult("no fork any more: the recipe as it stands will begin at step 0"))

    def _no_fork(self) -> None:
        self.forking.end()
        self.composer.settle()  # what was wrong with the fork is not wrong with a run of its own
        self._composed()

    def _composed(self) -> None:
        recipe, point, why, scarce, self._sure = self.composer.recipe, self.forking.point, "", "", ""
        # A text that is not applied is judged as a fork when it is.
        if recipe is not None and self.composer.edited is None:
            why, scarce = self.forking.judge(recipe)
        elsewhere = self.place.hindrance(None if point else recipe)
        if why or scarce or elsewhere:
            self.composer.say(why or scarce or elsewhere, bad=bool(why or scarce) or not self.place.asking)
        self.launch_button.description = f"Fork from step {point.step:,}" if point else "Launch"
        why = why or self.forking.hindrance or self.composer.hindrance
        self.launch_button.disabled = bool(why or elsewhere)
        self.launch_button.tooltip = f"not now: {why or elsewhere}" if why or elsewhere else _LAUNCHES
        # A fork has had some of its training already, and is not raced.
        (self.race_button.add_class if point else self.race_button.remove_class)("lab-forking")
        self.race_button.disabled = point is not None or bool(self.composer.hindrance)
        raced = "train it and a baseline on several seeds, and learn whether it is better"
        self.race_button.tooltip = f"not now: {why}" if why else raced
        self.try_view.compose()
        self._keep()
        if self._displayed:
            ahead = self.forking.ahead(recipe)
            self.composer.verdict.await_forecast("" if ahead is None else ahead.hash)
            self.forecast.show(ahead)
            self._saved.refresh()

    def _keep(self) -> None:
        self.kept = {
            **self.composer.composition.state.to_dict(),
            "fork": self.forking.kept,
            "watched": list(self.table.watched),
            "places": dict(self.monitor.places),
            "experiment": self.table.experiment,
            "view": self.composer.show.value,
            "open": self.composer.opened,
            "look": dict(self.table.look),
            "pinned": [*self.try_view.pinned],
            "place": self.place.text.value,
        }
        self.frame.kept = {"lab": self.model_id, "given": self._given, "state": self.kept}

    def _example(self) -> None:
        """A run to look at, of a preset that nothing is waited for; what is composed stays as it is."""
        self._start(presets.get(presets.EXAMPLE), HERE)

    def _heard(self, request: dict[str, Any]) -> None:
        """Do what the page asks for: a launch by key, what it kept of a Lab whose kernel has ended."""
        verb = request.get("do")
        if isinstance(request.get("typed"), str):
            self.composer.texts.typed(request["typed"])
        if verb == "launch" and request.get("again"):
            # Whatever became of the first press: the second meant the same.
            if self._launched:
                self.composer.say("launched once, pressed twice", whole="the second press came within a second")
        elif verb == "launch" and not self.launch_button.disabled:
            self._launch()
        elif verb == "race" and not self.race_button.disabled:
            self._race()
        # A cell that gives another recipe than it did to the kernel before means that one.
        elif verb == "restore" and request.get("given") == self._given:
            self.restore(request["state"])
            if not self.table.watched:
                self.table.watched = [row["id"] for row in self.table.rows if row["status"] in TRAINING]
            self.composer.say("as it was when the kernel ended")
            self._saved.refresh(now=True)

    def _rows_changed(self) -> None:
        self._saved.refresh()
        self.forecast.share(len(training_now()))
        self.monitor.stir()
        self.try_view.look()

    def _safely(self, do: Callable[[], Any]) -> None:
        """Errors of a handler belong where the user looks, not into the server's log."""
        try:
            do()
        except Exception as error:
            self.composer.say(str(error) or type(error).__name__, bad=True)
