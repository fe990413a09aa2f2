"""Composing a recipe: one section per axis, presets, the recipe as Python, JSON or difference, and what is wrong."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import ipywidgets

from workbench import presets
from workbench.choices.choice import Problem
from workbench.choices.progress import Budget
from workbench.recipe import AXES, Recipe
from workbench.ui.form import ChoiceKnob, Form
from workbench.ui.page import Page
from workbench.ui.recipe_text import as_difference, as_python
from workbench.ui.section import Section

RUN_FIELDS = ("name", "seed", "notes")
"""Fields of the recipe that belong to no axis; they are shown with the budget."""
# What is changed most; with every section open the form is several screens long.
_OPEN_AT_FIRST = ("architecture", "optimizer")
_SHOW = {
    "Form": "change knobs",
    "Python": "Python that builds this recipe",
    "JSON": "the recipe as a run's folder holds it",
    "Difference": "changed knobs beside the preset's values",
}


class Composer(ipywidgets.VBox):
    """Forms for every axis of a recipe, checked as they change.

    Args:
        recipe: what to start from; the first preset by default.
        changed: called after every later change and every preset loaded later.

    Example:
        >>> from workbench.ui.composer import Composer
        >>> composer = Composer()
        >>> composer.recipe.name
        'bert-tiny'
    """

    def __init__(self, recipe: Recipe | None = None, changed: Callable[[], None] = lambda: None) -> None:
        # The caller is told from the end of this constructor on: building and first loading are no changes of the
        # user's.
        self._told: Callable[[], None] = lambda: None
        self._recipe: Recipe | None = None
        self._problems: list[Problem] = []
        names = presets.names()
        start = recipe or presets.get(names[0])
        self._preset = None if recipe else names[0]
        self._base = start
        fields = start.to_dict()
        self.axes: dict[str, ChoiceKnob] = {
            axis: ChoiceKnob(axis, axis, "", Recipe.model_fields[axis].description or "", fields[axis], self._changed)
            for axis in AXES
        }
        self.budget = Form(Budget, "budget", self._changed)
        self.run = Form(Recipe, "", self._changed, only=RUN_FIELDS)
        sections = [Section.of_choice(axis, knob, opened=axis in _OPEN_AT_FIRST) for axis, knob in self.axes.items()]
        both = ipywidgets.VBox([self.run.widget, self.budget.widget])
        sections.append(Section("budget", both, lambda: self.budget.changes + self.run.changes, opened=True))
        self.sections = sections
        own = [("(given recipe)", None)] if recipe else []
        self.presets = ipywidgets.Dropdown(
            options=own + [(name, name) for name in names],
            value=self._preset,
            description="preset",
            tooltip="start from a preset; every knob is set to its value",
        )
        self.presets.observe(self._picked, names="value")
        self.about = ipywidgets.HTML()
        self.about.add_class("lab-summary")
        self.show = ipywidgets.ToggleButtons(options=list(_SHOW), value="Form", tooltips=list(_SHOW.values()))
        self.show.add_class("lab-show")
        self.show.observe(lambda _change: self._display(), names="value")
        self.text = ipywidgets.HTML()
        self.text.add_class("lab-text")
        self.verdict = ipywidgets.HTML()
        self.verdict.add_class("lab-verdict")
        head = ipywidgets.VBox([self.presets, self.about, self.show])
        head.add_class("lab-head")
        self._forms = ipywidgets.VBox([section.widget for section in sections])
        self._forms.add_class("lab-sections")
        self._middle = ipywidgets.VBox()
        self._middle.add_class("lab-middle")
        super().__init__([Page(), head, self._middle, self.verdict])
        self.add_class("lab-root")
        self.add_class("lab-composer")
        self.load(start)
        self._told = changed

    @property
    def recipe(self) -> Recipe | None:
        """The recipe as composed, None while there are problems."""
        return self._recipe

    @property
    def problems(self) -> list[Problem]:
        """Why there is no recipe, by path; empty when there is one."""
        return list(self._problems)

    @property
    def fields(self) -> dict[str, Any]:
        """All knobs as JSON has them, valid or not."""
        axes = {axis: knob.value for axis, knob in self.axes.items()}
        return {**self._base.to_dict(), **self.run.value, **axes, "budget": self.budget.value}

    def load(self, recipe: Recipe, baseline: Recipe | None = None) -> None:
        """Set every knob to ``recipe``; marks and resets refer to ``baseline`` (by default the recipe itself)."""
        self._base = baseline or recipe
        fields, base = recipe.to_dict(), self._base.to_dict()
        with self.hold_sync():
            for axis, knob in self.axes.items():
                knob.load(fields[axis], base[axis])
            self.budget.load(fields["budget"], base["budget"])
            self.run.load(fields, base)
        self._changed()

    def _picked(self, change: Any) -> None:
        if change["new"] is not None:
            self._preset = change["new"]
            self.load(presets.get(change["new"]))

    def _changed(self) -> None:
        fields = self.fields
        # Checked as plain data first: a recipe that is wrong cannot even be built.
        self._problems = Recipe.check(fields)
        self._recipe = None if self._problems else Recipe(**fields)
        rest = self._problems
        parts: list[ChoiceKnob | Form] = [*self.axes.values(), self.budget, self.run]
        for part in parts:
            part.spend(fields["budget"])
            # Each shows its own problems and hands on the others; what is left at the end belongs to no knob.
            rest = part.take(rest)
        for section in self.sections:
            section.update(self._problems)
        self._display()
        self.verdict.value = self._sentence(rest)
        self._told()

    def _display(self) -> None:
        form = self.show.value == "Form"
        shown = self._forms if form else self.text
        if not form:
            # Focusable, since text longer than its box can otherwise not be scrolled with the keyboard.
            self.text.value = f"<pre tabindex='0'>{html.escape(self._as_text(self.show.value))}</pre>"
        # Assigning children draws them anew, and the box one is typing in would lose the focus.
        if self._middle.children != (shown,):
            self._middle.children = (shown,)
        about = getattr(presets, self._preset).__doc__.strip().splitlines()[0] if self._preset else ""
        self.about.value = html.escape(about.replace(":func:", "").replace("`", ""))

    def _as_text(self, what: str) -> str:
        if self._recipe is None:
            return "\n".join(f"{problem.path}: {problem.message}" for problem in self._problems)
        if what == "JSON":
            return self._recipe.to_json()
        if what == "Python":
            return as_python(self._recipe, self._base, self._preset)
        return as_difference(self._recipe, self._base)

    def _sentence(self, rest: list[Problem]) -> str:
        """One line on where the recipe stands; problems that no knob shows are told here in full."""
        if not self._problems:
            count = sum(section.changes for section in self.sections)
            changed = f"{count} knob{'s' * (count != 1)} changed" if count else "as the preset has it"
            assert self._recipe is not None
            return f"<span class='lab-good'>ready</span> {changed} · recipe {self._recipe.hash}"
        first = (rest or self._problems)[0]
        more = f" (and {len(self._problems) - 1} more)" if len(self._problems) > 1 else ""
        return f"<span class='lab-bad'>cannot run</span> {html.escape(f'{first.path}: {first.message}')}{more}"
