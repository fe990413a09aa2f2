"""A form for any choice, made from its declared fields alone: types, bounds, units, scales, help and defaults.

Every part of a form has the same six names: ``value`` (as JSON has it), ``load(value, baseline)`` (show it without
calling back), ``take(problems)`` (show the errors of one's own knobs, leave the rest), ``changes`` (how many knobs
differ from the baseline) and ``widget``; and ``show(words)``, which hides what a search does not ask for. A baseline
is what "reset" returns to: the preset's value, or the default. ``catch(late)`` takes what was typed into another of
its kind, whose place it has taken before the page could show it.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import ipywidgets
from pydantic import BaseModel

from workbench.base.fields import flatten, same
from workbench.choices.choice import Choice, Problem, registry
from workbench.choices.edits import shared_values, with_kind
from workbench.choices.schedules import Schedule
from workbench.jupyter.compose.curve_editor import CurveEditor
from workbench.jupyter.compose.inputs import Shape, defaults, shape_of
from workbench.jupyter.compose.knob import Brought, Changed, Knob, Row
from workbench.jupyter.compose.knob_help import help_of, label_of
from workbench.jupyter.light_widgets import light
from workbench.plots.shape import KnobScale

CONSTANT = "constant"
"""Name of a plain number in the drop-down of a scheduled knob."""


class ChoiceKnob(Row):
    """One choice of an axis: a drop-down with the chosen one's summary, and its form below.

    Args:
        label: before the drop-down; HTML.
        default: JSON value of the field (a choice's mapping, or a number where ``plain`` allows one).
        plain: shape of the number that may stand in place of a choice.
        scale: of that number's slider, ``linear`` or ``log``.
        unit: of that number, or of a schedule's values.

    Attributes:
        picked: called when the user picks another kind, before ``changed``.
    """

    def __init__(
        self,
        path: str,
        axis: str,
        label: str,
        tooltip: str,
        default: Any,
        changed: Changed,
        plain: Shape | None = None,
        scale: str = "linear",
        unit: str = "",
    ) -> None:
        self.axis, self._plain, self._scale, self._unit = axis, plain, scale, unit
        # Made when a schedule is first chosen: most knobs never follow one.
        self._curve: CurveEditor | None = None
        self.picked: Changed = lambda: None
        self._budget: Mapping[str, Any] | None = None
        self._quiet = False
        # Forms are made when their kind is first chosen and kept, so that going back and forth loses nothing ...
        self._parts: dict[str, Form | Knob] = {}
        # ... until another preset is loaded: a ramp that began at one's batch would be no start for the next one's.
        self._seen: set[str] = set()
        if plain is not None:
            number = default if not isinstance(default, Mapping) else 0.0
            constant = Knob(path, plain, "", tooltip, number, scale, lambda: self._heard(CONSTANT))
            constant.widget.add_class("lab-constant")
            self._parts[CONSTANT] = constant
        self.picker = light(
            ipywidgets.Dropdown,
            options=([CONSTANT] if plain else []) + list(registry(axis)),
            description=label,
            description_allow_html=True,
            tooltip=tooltip,
        )
        self.picker.observe(self._picked, names="value")
        self.summary = light(ipywidgets.HTML)
        self.summary.add_class("lab-summary")
        self.body = light(ipywidgets.VBox)
        self.body.add_class("lab-nested")
        super().__init__(path, tooltip, default, changed, [self.picker, self.body])
        self.load(default, default)

    @property
    def kind(self) -> str:
        """The chosen kind, or :data:`CONSTANT`."""
        return str(self.picker.value)

    @property
    def choice(self) -> type[Choice] | None:
        """The chosen class, None for a plain number."""
        return None if self.kind == CONSTANT else registry(self.axis)[self.kind]

    @property
    def part(self) -> Form | Knob:
        """The form of the chosen kind, or the number's knob."""
        if self.kind not in self._parts:
            kind, model = self.kind, registry(self.axis)[self.kind]
            self._parts[kind] = Form(model, self.path, lambda: self._heard(kind))
        return self._parts[self.kind]

    @property
    def value(self) -> Any:
        """The choice's mapping with ``kind``, or the number."""
        return self.part.value

    @property
    def changes(self) -> int:
        """Changed knobs of the chosen form; another kind than the baseline's counts as one more."""
        return self.part.changes + int(self.kind != _kind(self._baseline))

    @property
    def brought(self) -> list[Brought]:
        """Return the knobs that this kind shares with the baseline's other kind, and starts elsewhere."""
        if CONSTANT in (self.kind, before := _kind(self._baseline)) or self.kind == before:
            return self.part.brought
        base, start, now = map(flatten, (self._baseline, self._start(self._baseline), self.value))
        return [
            Brought(self.kind, f"{self.path}.{path}", base[path], value)
            for path, value in now.items()
            # One that was turned since is counted with the changes.
            if path != "kind" and path in base and not same(base[path], value) and same(start.get(path), value)
        ]

    def load(self, value: Any, baseline: Any) -> None:
        """Show ``value``; "reset" returns to ``baseline`` where that has the same kind, else to the kind's defaults."""
        if not same(baseline, self._baseline):
            self._seen.clear()
        self._baseline = baseline
        self._quiet = True
        try:
            self.picker.value = _kind(value)
        finally:
            self._quiet = False
        self.part.load(value, self._part_baseline(value))
        self._seen.add(self.kind)
        self._arrange()

    def take(self, problems: list[Problem]) -> list[Problem]:
        """Show the problems that belong in here, return the others."""
        return super().take(self.part.take(problems))

    def spend(self, budget: Mapping[str, Any]) -> None:
        """Let the curves in here show this budget (as JSON has it; it may be wrong) along their time."""
        if isinstance(self.part, Form):
            self.part.spend(budget)
        if budget != self._budget:
            self._budget = dict(budget)
            if self._curve is not None and self.kind != CONSTANT:
                self._curve.show(self.value, self._budget)

    def show(self, words: Sequence[str]) -> int:
        """Show the knobs that hold all of these ``words``, hide the others unless itself does; returns how many."""
        # An axis by its name alone: its help tells of what all the others do.
        text = f"{self._search_text if '.' in self.path else self.path} {self.kind}".replace("_", " ")
        own = all(word in text for word in words)
        # Kept forms of other kinds as well, or they would come back filtered by a search of long ago.
        found = {kind: part.show(() if own else words) for kind, part in self._parts.items()}
        below = found.get(self.kind, 0) if isinstance(self.part, Form) else 0
        # Named itself, the drop-down is a find as well, with all that stands below it.
        return below + int(own)

    def rank(self, words: Sequence[str]) -> int:
        """Return its own rank, or that of the best knob in its form."""
        own = super().rank(words)
        return min(own, self.part.rank(words)) if isinstance(self.part, Form) else own

    def _part_baseline(self, value: Any) -> Any:
        if self.kind == _kind(self._baseline):
            return self._baseline
        return value if self.kind == CONSTANT else self._start(self._baseline)

    def _start(self, before: Any) -> dict[str, Any]:
        """Return the chosen kind as it first appears: a schedule at the knob's number,
        any other choice as in an edit.
        """
        model = registry(self.axis)[self.kind]
        number = isinstance(before, int | float) and not isinstance(before, bool)
        if number and issubclass(model, Schedule):
            start = model.around(before).model_dump(mode="json")
            return start | {name: _within(start[name], self._plain) for name in model.levels}
        return with_kind(self.axis, before, self.kind)

    def _picked(self, change: Any) -> None:
        if self._quiet:
            return
        # A kind that was edited before comes back as it was left, but for what both have, which is as it was last.
        known = self.kind in self._seen
        self._seen.add(self.kind)
        baseline = self._part_baseline(self.part.value)
        # What is in the boxes now, which may have been typed a moment ago: the baseline is the preset's.
        start, before = self.part.value, self._parts[change["old"]].value
        if self.kind != CONSTANT:
            start = start | shared_values(self.axis, before, self.kind) if known else self._start(before)
        self.part.load(start, baseline)
        self._arrange()
        self.picked()
        self._changed()

    def catch(self, late: Form | Row) -> None:
        """Show what was typed last into ``late``, where that is of the same kind."""
        if isinstance(late, ChoiceKnob) and late.kind == self.kind:
            self.part.catch(late.part)

    def _heard(self, kind: str) -> None:
        # A pick has taken the place of the form that was typed into, and the page has not shown it yet.
        if kind != self.kind:
            self.part.catch(self._parts[kind])
        self._arrange()
        self._changed()

    def _arrange(self) -> None:
        if self.choice:
            # A button of the page's own: a widget for each of dozens of schedules would slow every load.
            more = f" <button class='lab-more' data-path='{self.path}'>more<span> about {self.kind}</span></button>"
            self.summary.value = html.escape(self.choice.summary()) + (more if "." in self.path else "")
        part = self.part
        shown = [part.widget] if isinstance(part, Knob) or part.knobs else []
        if isinstance(part, Form) and self.choice:
            curve = [self._drawn()] if issubclass(self.choice, Schedule) else []
            shown = [self.summary, *curve, *shown]
        if self.body.children != tuple(shown):
            self.body.children = shown
        (self.body.add_class if self.kind == CONSTANT else self.body.remove_class)("lab-of-constant")
        self._offer_reset(self.kind != _kind(self._baseline))

    def _drawn(self) -> CurveEditor:
        """Return the curve of the chosen schedule as its knobs have it now."""
        if self._curve is None:
            plain = self._plain
            bounds = (plain.low, plain.high) if plain else (None, None)
            whole = plain is not None and plain.kind == "int"
            self._curve = CurveEditor(
                f"curve of {self.path}", KnobScale(*bounds, self._unit, self._scale == "log", whole), self._redrawn
            )
        self._curve.show(self.value, self._budget)
        return self._curve

    def _redrawn(self, fields: Mapping[str, Any]) -> None:
        """Let the knobs say what the curve says, as one change of the user."""
        self.part.load(fields, self._part_baseline(fields))
        self._heard(self.kind)


class Form:
    """The knobs of one model class, in the order it declares them.

    Args:
        model: a registered choice, or any pydantic model of plain fields.
        changed: called once after each change by the user, never after :meth:`load`.
        only: names of the fields to show (all by default).
    """

    def __init__(self, model: type[BaseModel], path: str, changed: Changed, only: tuple[str, ...] = ()) -> None:
        self.model, self.path = model, path
        self._told, self._latest = changed, ""
        start = defaults(model)
        shown = [name for name in model.model_fields if not only or name in only]
        # One legal value is no choice: the kind itself, or a head that is always the model's own.
        self._settled = {n: start[n] for n in shown if len(shape_of(model.model_fields[n]).options) == 1}
        self.knobs: dict[str, Knob | ChoiceKnob] = {
            name: _knob(model, path, name, start[name], partial(self._heard, name))
            for name in shown
            if name not in self._settled
        }
        # What has no default comes first: nothing can run before somebody fills it in.
        order = sorted(self.knobs, key=lambda name: not model.model_fields[name].is_required())
        self.widget = light(ipywidgets.VBox, [self.knobs[name].widget for name in order])
        self.widget.add_class("lab-form")

    @property
    def value(self) -> dict[str, Any]:
        """All knobs as JSON has them, with ``kind`` for a choice."""
        return self._settled | {name: knob.value for name, knob in self.knobs.items()}

    @property
    def changes(self) -> int:
        """Knobs that differ from the baseline, nested ones included."""
        return sum(knob.changes for knob in self.knobs.values())

    @property
    def brought(self) -> list[Brought]:
        """Knobs that differ because another choice brought its own values."""
        return [each for knob in self.knobs.values() for each in knob.brought]

    def load(self, value: Mapping[str, Any], baseline: Mapping[str, Any] | None = None) -> None:
        """Show ``value``; "reset" returns to ``baseline`` (the defaults when it is None). Missing fields: defaults."""
        start = defaults(self.model)
        base = start if baseline is None else {**start, **baseline}
        for name, knob in self.knobs.items():
            knob.load(value.get(name, start[name]), base[name])

    def show(self, words: Sequence[str]) -> int:
        """Hide the knobs whose names and help lack one of these lower-case ``words``; returns how many are left."""
        found = {name: knob.show(words) for name, knob in self.knobs.items()}
        kept = [knob for name, knob in self.knobs.items() if found[name]]
        shown = tuple(knob.widget for knob in (sorted(kept, key=lambda knob: knob.rank(words)) if words else kept))
        if self.widget.children != shown:
            self.widget.children = shown
        return sum(found.values())

    def rank(self, words: Sequence[str]) -> int:
        """Return the rank of the best knob in here."""
        return min((knob.rank(words) for knob in self.knobs.values()), default=3)

    def spend(self, budget: Mapping[str, Any]) -> None:
        """Let the curves in here show this budget, as :meth:`ChoiceKnob.spend` does."""
        for knob in self.knobs.values():
            if isinstance(knob, ChoiceKnob):
                knob.spend(budget)

    def catch(self, late: Form | Row) -> None:
        """Show what was typed last into ``late``, where there is such a knob in here."""
        if isinstance(late, Form) and late._latest in self.knobs:
            self.knobs[late._latest].catch(late.knobs[late._latest])

    def _heard(self, name: str) -> None:
        self._latest = name
        self._told()

    def take(self, problems: list[Problem]) -> list[Problem]:
        """Show each problem beside its knob, return those that belong elsewhere."""
        for knob in self.knobs.values():
            problems = knob.take(problems)
        return problems


def _knob(model: type[BaseModel], path: str, name: str, default: Any, changed: Changed) -> Knob | ChoiceKnob:
    info = model.model_fields[name]
    shape = shape_of(info)
    extra: Any = info.json_schema_extra or {}
    full = f"{path}.{name}" if path else name
    tooltip = help_of(full, info, default)
    label = label_of(name, extra.get("unit", ""), tooltip)
    if shape.kind == "choice":
        scale = extra.get("scale", "linear")
        unit = extra.get("unit", "")
        return ChoiceKnob(full, shape.axis, label, tooltip, default, changed, shape.plain, scale, unit)
    return Knob(full, shape, label, tooltip, default, extra.get("scale", "linear"), changed)


def _within(level: Any, plain: Shape | None) -> Any:
    """Return a level of a schedule moved into the knob's bounds:
    a batch that ends at 0 rows would be refused at once.
    """
    if isinstance(level, list):
        return [_within(each, plain) for each in level]
    low, high = (plain.low, plain.high) if plain else (None, None)
    return max(min(level, level if high is None else high), level if low is None else low)


def _kind(value: Any) -> str:
    return str(value["kind"]) if isinstance(value, Mapping) else CONSTANT
