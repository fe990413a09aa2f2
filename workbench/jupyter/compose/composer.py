"""Composing a recipe: one section per axis, presets, undo, the recipe as text or difference, and what is wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import ipywidgets

from workbench.base.errors import WorkbenchError
from workbench.base.text import plain
from workbench.choices.choice import Problem
from workbench.choices.progress import Budget, parse_budget
from workbench.jupyter.compose.composition import Composition, State, described
from workbench.jupyter.compose.difference_view import DifferenceView
from workbench.jupyter.compose.form import ChoiceKnob, Form
from workbench.jupyter.compose.knob_finder import KnobFinder
from workbench.jupyter.compose.knob_help import help_of
from workbench.jupyter.compose.method_card import CardPanel
from workbench.jupyter.compose.objective_preview import ObjectivePreview
from workbench.jupyter.compose.recipe_editor import Edited
from workbench.jupyter.compose.recipe_text import as_html
from workbench.jupyter.compose.recipe_texts import VIEWS, RecipeTexts
from workbench.jupyter.compose.section import Section
from workbench.jupyter.compose.side_panel import SidePanel
from workbench.jupyter.compose.source_picker import SourcePicker
from workbench.jupyter.compose.sources import about, default_recipe, preset_of, recipe_of, run_sources
from workbench.jupyter.compose.verdict import Verdict
from workbench.jupyter.light_widgets import Light, light
from workbench.jupyter.page import Page
from workbench.jupyter.saved_output import view_bundle
from workbench.recipes import presets
from workbench.recipes.recipe import AXES, Recipe

RUN_FIELDS = ("name", "seed", "notes")
"""Fields of the recipe that belong to no axis; they are shown with the budget."""


class Composer(Light, ipywidgets.VBox):
    """Forms for every axis of a recipe, checked as they change.

    Args:
        changed: called after every later change and every preset loaded later.
        objections: what speaks against knobs of a recipe that breaks no rule, shown beside them.

    Example:
        >>> from workbench.jupyter.compose.composer import Composer
        >>> composer = Composer()
        >>> composer.recipe.name
        'fast'
    """

    def __init__(
        self,
        recipe: Recipe | None = None,
        changed: Callable[[], None] = lambda: None,
        runs_dir: str | Path | None = None,
        objections: Callable[[Recipe], Sequence[Problem]] = lambda _recipe: (),
    ) -> None:
        # The caller is told from the end of this constructor on: building and first loading are no changes of the
        # user's.
        self._on_change: Callable[[], None] = lambda: None
        self._runs_dir, self._objections = runs_dir, objections
        self._quiet, self._card_of = False, ""
        self._panel: SidePanel | None = None
        source = preset_of(recipe) if recipe else presets.DEFAULT
        # What the entry without a name stands for in the drop-down of presets.
        self._own = recipe or default_recipe()
        self.composition = Composition(self._own, source)
        fields, declared = self.composition.state.fields, Recipe.model_fields
        self.axes: dict[str, ChoiceKnob] = {
            axis: ChoiceKnob(axis, axis, "", help_of(axis, declared[axis], None), fields[axis], self._changed)
            for axis in AXES
        }
        self.budget = Form(Budget, "budget", self._budget_changed)
        self.run = Form(Recipe, "", self._changed, only=RUN_FIELDS)
        self.sections = self._make_sections()
        self.toggles = {section.name: section.toggle for section in self.sections}
        self.page = Page(self._heard)
        self.verdict = Verdict()
        self.texts = RecipeTexts(self.composition, self._take_over, self.settle)
        self.python, self.json = self.texts.python, self.texts.json
        self.difference = DifferenceView(self.enter, runs_dir)
        self.card = CardPanel(lambda: self._show_card(""))
        self._forms = light(ipywidgets.VBox, [section.widget for section in self.sections])
        self._forms.add_class("lab-sections")
        self._beside = light(ipywidgets.Box)
        self._beside.add_class("lab-beside")
        self._middle = light(ipywidgets.VBox, [self._beside])
        self._middle.add_class("lab-middle")
        self.finder = KnobFinder(self.sections, self._forms, self.axes)
        self._head = self._make_head(source)
        super().__init__([self.page, self._head, self._middle, self.verdict])
        self.add_class("lab-root")
        self.add_class("lab-composer")
        self._put()
        self._on_change = changed

    def _make_sections(self) -> list[Section]:
        self.preview = ObjectivePreview()
        sections = [
            Section.of_choice(axis, knob, False, partial(self._help_pressed, axis), self.preview.of(axis))
            for axis, knob in self.axes.items()
        ]
        both = light(ipywidgets.VBox, [self.run.widget, self.budget.widget])
        return [*sections, Section("budget", both, [self.run, self.budget], opened=True)]

    def _make_head(self, source: str | None) -> ipywidgets.Widget:
        self.presets = SourcePicker(
            "preset", "start from a preset or from the recipe of a run; every knob is set, and undo takes it back",
            lambda: run_sources(self._runs_dir), "" if source else "(given recipe)", source,
        )  # fmt: skip
        self.presets.observe(self._picked, names="value")
        self.undo_button, self.redo_button = (light(ipywidgets.Button, icon=icon) for icon in ("undo", "repeat"))
        for button, step in ((self.undo_button, self.undo), (self.redo_button, self.redo)):
            button.add_class("lab-tool")
            button.on_click(lambda _button, step=step: step())
        self._start = light(ipywidgets.HBox, [self.presets, self.undo_button, self.redo_button])
        self._start.add_class("lab-start")
        self.show = light(ipywidgets.ToggleButtons, options=list(VIEWS), value="Form", tooltips=list(VIEWS.values()))
        self.show.add_class("lab-show")
        self.show.observe(lambda _change: self._view_chosen(), names="value")
        views = light(ipywidgets.HBox, [self.show, self.finder.text])
        views.add_class("lab-views")
        head = light(ipywidgets.VBox, [self._start, views])
        head.add_class("lab-head")
        return head

    @property
    def recipe(self) -> Recipe | None:
        """The recipe as composed, None while there are problems."""
        return self.composition.recipe

    @property
    def problems(self) -> list[Problem]:
        """Reasons why there is no recipe, by path; empty when there is one."""
        return list(self.composition.problems)

    @property
    def opened(self) -> list[str]:
        """Names of the sections that are open; assign others to open those alone."""
        return [name for name, toggle in self.toggles.items() if toggle.value]

    @opened.setter
    def opened(self, names: Sequence[str]) -> None:
        for name, toggle in self.toggles.items():
            toggle.value = name in names

    @property
    def edited(self) -> Edited | None:
        """Text on the page that is not applied: neither :attr:`recipe` nor :attr:`problems` are of it."""
        return self.texts.edited

    @property
    def hindrance(self) -> str:
        """The reason why nothing can be launched; empty where something can, be it :meth:`taken` over first."""
        if self.edited is not None:
            return self.edited.why
        return "; ".join(f"{problem.path}: {problem.message}" for problem in self.problems)

    def taken(self) -> Recipe | None:
        """The recipe on the page: text that is not applied is taken over first. None while there are problems."""
        self.texts.take()
        return None if self.edited else self.recipe

    @property
    def fields(self) -> dict[str, Any]:
        """All knobs as JSON has them, valid or not."""
        axes = {axis: knob.value for axis, knob in self.axes.items()}
        # In the order that a recipe declares, which JSON and Python show.
        known = {**self.composition.state.fields, **self.run.value, **axes, "budget": self.budget.value}
        return {name: known[name] for name in Recipe.model_fields}

    def __repr__(self) -> str:
        recipe = self.recipe
        return f"Composer({f'{len(self.problems)} problems' if recipe is None else plain(recipe.name)})"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        return view_bundle(self.model_id, repr(self), as_html(self.recipe))

    def load(self, recipe: Recipe, baseline: Recipe | None = None, source: str | None = None) -> None:
        """Set every knob to ``recipe``; marks and resets refer to ``baseline`` (else to it), which is of ``source``."""
        self.composition.begin(baseline or recipe, source, recipe.to_dict())
        self._put()

    def restore(self, state: State) -> None:
        """Show what another composer was left with, knobs that are not valid included."""
        self.composition.begin(state.base, state.source, state.fields)
        self._put()

    def dock(self, start: ipywidgets.Widget, above: ipywidgets.Widget, beside: Sequence[ipywidgets.Widget]) -> None:
        """Put widgets before the presets, above the verdict and beside it: they have its keys and help then."""
        self._start.children = (start, *self._start.children)
        bar = light(ipywidgets.HBox, [*beside, self.verdict])
        bar.add_class("lab-launching")
        # Launching is still allowed, and no longer what the eye is led to.
        self.verdict.observe(
            lambda change: (bar.add_class if change["new"] else bar.remove_class)("lab-doubted"), names="doubted"
        )
        self.children = (self.page, self._head, self._middle, above, bar)

    def aside(self, panel: SidePanel | None) -> None:
        """Show a panel beside the form in place of what stands there, or none."""
        self._panel = panel
        if panel is not None:
            self._show_card("")
        self._display()

    def undo(self) -> None:
        """Take back the last change."""
        self._walk("undo", self.composition.undoes, self.composition.undo)

    def redo(self) -> None:
        """Make the change that was undone last again."""
        self._walk("redo", self.composition.redoes, self.composition.redo)

    def reset(self) -> None:
        """Set every knob back to where it began, as one change."""
        state = self.composition.state
        self.composition.begin(state.base, state.source)
        self._put("every knob was reset")

    def _walk(self, verb: str, what: str, step: Callable[[], list[str]]) -> None:
        if not what:
            self.say(f"nothing to {verb}: no change was {'made yet' if verb == 'undo' else 'undone'}")
            return
        before = self.composition.state
        moved = step()
        # As it goes now: "-3 → 0.004" takes back "0.004 → -3".
        self._put(f"{verb}: {described(before, self.composition.state)}")
        if len(moved) == 1:
            self._point_at(moved[0])

    def _changed(self) -> None:
        """A knob was turned."""
        self.composition.change(self.fields)
        self.settle()

    def _budget_changed(self) -> None:
        # An amount with its unit, as a budget is written everywhere else (20 s), is both.
        with contextlib.suppress(ValueError):
            both = parse_budget(str(self.budget.value["amount"]))
            self.budget.load({**self.budget.value, **both}, self.composition.state.base.to_dict()["budget"])
        self._changed()

    def enter(self, fields: Mapping[str, Any], what: str = "") -> None:
        """Set knobs from elsewhere than the form, as one change; ``what`` says where they come from."""
        self.composition.change(fields)
        self._put(what)

    def _put(self, message: str = "") -> None:
        """Show the present state in every knob."""
        state = self.composition.state
        self._quiet = True
        try:
            if state.source is None:
                self._own, self.presets.own = state.base, "(given recipe)"
            self.presets.value = state.source
        finally:
            self._quiet = False
        fields, base = state.fields, state.base.to_dict()
        for axis, knob in self.axes.items():
            knob.load(fields[axis], base[axis])
        self.budget.load(fields["budget"], base["budget"])
        self.run.load(fields, base)
        self.settle(message)

    def settle(self, message: str = "") -> None:
        """Show everywhere what the knobs say now."""
        problems, budget = self.composition.problems, self.composition.state.fields["budget"]
        problems = problems or ([] if self.recipe is None else [*self._objections(self.recipe)])
        rest = problems or [*self.composition.doubts]
        parts: list[ChoiceKnob | Form] = [*self.axes.values(), self.budget, self.run]
        for part in parts:
            part.spend(budget)
            # Each shows its own problems and hands on the others; what is left at the end belongs to no knob.
            rest = part.take(rest)
        changes = [section.changes for section in self.sections]
        brought = [section.brought for section in self.sections]
        for section, count, more in zip(self.sections, changes, brought, strict=True):
            section.update(problems, count, more)
        for button, what, verb, keys in (
            (self.undo_button, self.composition.undoes, "undo", "Ctrl+Z"),
            (self.redo_button, self.composition.redoes, "redo", "Ctrl+Shift+Z"),
        ):
            button.tooltip = f"{verb} {what} ({keys})" if what else f"{verb} ({keys}): nothing yet"
            # Not disabled: a button that loses the focus with its last step leaves the keyboard nowhere.
            (button.remove_class if what else button.add_class)("lab-dim")
        self.finder.refresh()
        self.preview.show(self.recipe)
        self._fill_card()
        self._display()
        self.verdict.show(self.composition, rest, sum(changes), message, [*chain(*brought)], self.texts)
        self._on_change()

    def _view_chosen(self) -> None:
        before = self.edited
        self._display()
        if self.edited != before:
            self.settle()

    def _display(self) -> None:
        """Show the chosen view; the others are brought up to date when they are chosen."""
        view, state = self.show.value, self.composition.state
        shown: ipywidgets.Widget = self.texts.show(view) or self._forms
        if view == "Difference":
            self.difference.show(state)
            shown = self.difference
        # There are no knobs to explain or find in the other views, which take that room.
        (self.add_class if view == "Form" else self.remove_class)("lab-has-knobs")
        panel = self.card if self._card_of else self._panel
        beside = (shown, panel) if panel is not None else (shown,)
        # Assigning children draws them anew, and the box one is typing in would lose the focus.
        if self._beside.children != beside:
            self._beside.children = beside
        self.page.resting = about(state.source) if state.source else "a recipe of your own"

    def _take_over(self, recipe: Recipe) -> None:
        """Take over a text that was applied; marks refer to what they referred to before."""
        self.composition.change(recipe.to_dict())
        self._put()

    def _picked(self, change: Any) -> None:
        source = change["new"]
        if self._quiet:
            return
        try:
            recipe = recipe_of(source, self._runs_dir) if source else self._own
        except WorkbenchError as error:
            self._quiet = True
            self.presets.value = change["old"]
            self._quiet = False
            self.say(str(error), bad=True)
            return
        self.composition.begin(recipe, source)
        self._put()

    def _heard(self, request: dict[str, Any]) -> None:
        """Do what the page asks for by keys and links."""
        verbs = {"undo": self.undo, "redo": self.redo, "reset": self.reset, "close": self._close_panel}
        if (verb := str(request.get("do"))) in verbs:
            verbs[verb]()
        elif isinstance(request.get("card"), str):
            self._show_card(request["card"])
        elif isinstance(request.get("go"), str):
            self.finder.clear()
            self.show.value = "Form"
            self._point_at(request["go"], focus=True)

    def _point_at(self, path: str, focus: bool = False) -> None:
        name = path.split(".")[0]
        self.opened = [*self.opened, "budget" if name in RUN_FIELDS else name]
        self.page.point_at(path, focus)

    def _help_pressed(self, axis: str, on: bool) -> None:
        # Pressed out, by the user or because another card was opened.
        if on or self._card_of == axis:
            self._show_card(axis if on else "")

    def _close_panel(self) -> None:
        if self._card_of:
            self._show_card("")
        elif self._panel is not None:
            self._panel.closed()

    def _show_card(self, path: str) -> None:
        """Show the card of the choice at ``path``, or none."""
        if path and self._panel is not None:
            self._panel.closed()
        self._card_of = path
        self._fill_card()
        self._display()

    def _fill_card(self) -> None:
        """Bring the card up to date with its knob; closed where that no longer holds a choice."""
        choice = getattr(self._choice_at(self._card_of), "choice", None)
        if choice is None:
            self._card_of = ""
        else:
            self.card.show(self._card_of.rpartition(".")[2].replace("_", " "), choice)
        for section in self.sections:
            if section.help is not None:
                section.help.value = section.name == self._card_of

    def _choice_at(self, path: str) -> ChoiceKnob | None:
        first, *rest = path.split(".")
        knob: Any = self.axes.get(first)
        for name in rest:
            knob = knob.part.knobs.get(name) if isinstance(getattr(knob, "part", None), Form) else None
        return knob if isinstance(knob, ChoiceKnob) else None

    def say(self, text: str, bad: bool = False, whole: str = "") -> None:
        """Tell the user something where the verdict stands, until the next change; ``whole``: more, in its tooltip."""
        self.verdict.say(text, bad, whole)
