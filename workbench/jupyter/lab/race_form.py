"""The form that begins a race of the composed recipe: against what, on how many seeds, at what budget and cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from workbench.base.errors import WorkbenchError
from workbench.base.fields import as_typed
from workbench.choices.data.data import Data
from workbench.experiments.budget import parse
from workbench.experiments.race.race import Race, begin, race
from workbench.experiments.race.race_plan import ARM_NAME, RacePlan
from workbench.experiments.race.race_words import cost_lines
from workbench.experiments.race.sequential import LOOKS, MOST_SEEDS
from workbench.experiments.sweep.space import label
from workbench.jupyter.bundles import code, style
from workbench.jupyter.compose.source_picker import SourcePicker
from workbench.jupyter.compose.sources import RUN, recipe_of, run_sources, title_of
from workbench.recipes import presets
from workbench.recipes.recipe import Recipe

DEFAULT_SEEDS = 6
_NAMED_KNOBS = 3
_NOT_RACED = ("name", "notes", "seed", "budget.")


class RaceForm(SourcePicker):
    """A dialog that the page shows once it was opened.

    What is asked is worked out as ``wb.race(..., dry_run=True)`` does, and what begins is that very plan: nothing is
    trained that the page has not named the cost of.

    Args:
        runs_dir: the runs folder.
        begun: called with the race once it has begun.
        rows: of the table of runs, for what there is to say of each that can be raced against.

    Attributes:
        value: the baseline, as a source of a recipe; None for what the composition began with.
    """

    _code = code("race_form")
    _css = style("race_form")

    def __init__(
        self,
        runs_dir: str | Path | None,
        begun: Callable[[Race], None],
        rows: Callable[[], Iterable[Mapping[str, Any]]] = tuple,
    ) -> None:
        super().__init__(
            "against", "the baseline of the race", lambda: run_sources(runs_dir, rows()), "what this began with"
        )
        self._runs_dir, self._begun = runs_dir, begun
        self._recipes: tuple[Recipe, Recipe] | None = None
        self._plan: RacePlan | None = None
        self._asked = 0
        # One after another: each measures and prepares what the next would, too.
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="workbench-race-form")

    def offer(self, composed: Recipe, base: Recipe, began: str) -> None:
        """Show it.

        Args:
            composed: what is raced. base: what it began with, and ``began`` in words.
        """
        self._recipes, self._plan = (composed, base), None
        self.value, self.own = None, f"{began}, where this began"
        # That one stands first already.
        self.presets = [name for name in presets.names() if presets.get(name) != base]
        self.send({"open": {"recipe": composed.name, "name": _race_name(composed, base, base.name),
                            "seeds": DEFAULT_SEEDS, "most": MOST_SEEDS, "looks": LOOKS}})  # fmt: skip

    def close(self) -> None:
        """Leave the page; a race that has begun goes on."""
        if hasattr(self, "_worker"):
            self._worker.shutdown(wait=False, cancel_futures=True)
        super().close()

    def _on_message(self, widget: Any, content: Any, buffers: Any) -> None:
        """Answer the page. Returns at once: a forecast may prepare text and measure the machine."""
        super()._on_message(widget, content, buffers)
        message = content if isinstance(content, dict) else {}
        if isinstance(ask := message.get("price"), int):
            self._asked, self._plan = ask, None
            try:
                if budget := _text(message.get("budget")):
                    parse(budget)
            except WorkbenchError as error:
                # At once, and not behind what is worked out already.
                self._tell(ask, {"error": str(error)})
            else:
                self._worker.submit(self._price, ask, self.value, message)
        elif message.get("start") == self._asked and self._plan is not None:
            plan, self._plan = self._plan, None
            try:
                self._begun(begin(plan))
                self.send({"begun": True})
            except WorkbenchError as error:
                self.send({"priced": self._asked, "error": str(error)})

    def _price(self, ask: int, against: str | None, message: dict[str, Any]) -> None:
        """Work out what is asked, unless something else was asked since."""
        if ask != self._asked or self._recipes is None:
            return
        composed, base = self._recipes
        try:
            baseline = base if against is None else recipe_of(against, self._runs_dir)
            asked = baseline
            if not (against or "").startswith(RUN):
                # Scores compare on the same text alone; a run has text of its own.
                baseline = on_text_of(baseline, composed)
            called = _called(against, base, baseline)
            suggested = _race_name(composed, baseline, called)
            name = _text(message.get("name")) or suggested
            theirs, mine = _arms(composed.name, called)
            plan = race(
                {theirs: baseline, mine: composed}, _text(message.get("budget")) or None,
                message.get("seeds", DEFAULT_SEEDS), baseline=theirs, score=message.get("score", "nats"), name=name,
                runs_dir=self._runs_dir, dry_run=True, say=lambda _line: None,
            )  # fmt: skip
        except WorkbenchError as error:
            self._tell(ask, {"error": str(error)})
        except Exception as error:  # the form is where the user looks
            self._tell(ask, {"error": f"{type(error).__name__}: {error}"})
        else:
            assert isinstance(plan, RacePlan)
            if ask == self._asked:
                self._plan = plan
            # What was told on the way, such as text that was prepared, is over. The cost first, then what it is for.
            cost, *finer = cost_lines(plan)
            same = f"both read the text of {mine}, and {theirs} keeps its rows and tokenizer"
            read = [] if baseline == asked else [same]
            lines = [cost, *_difference(composed, baseline, mine), *read, *finer]
            self._tell(ask, {"lines": lines, "name": suggested})

    def _tell(self, ask: int, answer: dict[str, Any]) -> None:
        if not self.has_left:
            self.send({"priced": ask, **answer})


def on_text_of(recipe: Recipe, other: Recipe) -> Recipe:
    """Return a recipe with its own rows and tokenizer, trained and scored on the text of another one."""
    data = other.data
    source = {name: getattr(data, name) for name in type(data).model_fields if name not in Data.model_fields}
    return recipe.with_(data={"kind": data.kind, "heldout_fraction": data.heldout_fraction, **source})


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _called(against: str | None, base: Recipe, baseline: Recipe) -> str:
    if against is None:
        return base.name
    # A run has the name that it was given last, which its recipe comes with.
    return baseline.name if against.startswith(RUN) else title_of(against).partition(" ")[2]


def _arms(composed: str, called: str) -> tuple[str, str]:
    """Name baseline and composed recipe in the race: as everywhere else, where that tells them apart."""
    theirs, mine = (each if re.fullmatch(ARM_NAME, each) else "" for each in (called, composed))
    # A preset is called baseline, too: raced against another, it is not the baseline.
    mine = "mine" if mine in ("", theirs, "baseline") else mine
    return ("baseline" if theirs in ("", mine) else theirs), mine


def _changed(composed: Recipe, baseline: Recipe) -> dict[str, tuple[Any, Any]]:
    """Return knobs that both have with other values, what matters most first; what a choice alone has,
    its name says.
    """
    both = {path: values for path, values in composed.diff(baseline).items()
            if None not in values and not path.startswith(_NOT_RACED)}  # fmt: skip
    return dict(sorted(both.items(), key=lambda item: _weight(item[0])))


def _weight(path: str) -> int:
    """Return choices of an axis first, then the rate and its schedule; of the rest nothing is known."""
    _, *names = path.split(".")
    ranked = (names == ["kind"], names[:1] == ["lr"], names[:1] == ["schedule"])
    return ranked.index(True) if True in ranked else len(ranked)


def _difference(composed: Recipe, baseline: Recipe, mine: str = "mine") -> list[str]:
    """Return the knobs in which two recipes differ, as one line; none where the arms ask for the same."""
    changed = {path: map(as_typed, values) for path, values in _changed(composed, baseline).items()}
    knobs = [f"{path} {there} \N{RIGHTWARDS ARROW} {here}" for path, (here, there) in changed.items()]
    named = ", ".join(knobs[:_NAMED_KNOBS])
    if (more := len(knobs) - _NAMED_KNOBS) > 0:
        return [f"{mine} differs in {len(knobs)} knobs: {named} and {more} more"]
    return [f"{mine} differs in {named}"] if knobs else []


def _race_name(composed: Recipe, baseline: Recipe, called: str) -> str:
    """Name a race by its recipes, and by the knobs that differ where both are called alike."""
    knobs = [*_changed(composed, baseline).items()][:_NAMED_KNOBS]
    mine = label({path: here for path, (here, _) in knobs}) if knobs and composed.name == called else composed.name
    return f"{mine} against {called}"
