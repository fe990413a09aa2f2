"""One axis in the composer: a heading that opens and closes, the choice, its knobs, and a "?" for its card."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

import ipywidgets

from workbench.choices.choice import Problem
from workbench.jupyter.compose.form import ChoiceKnob, Form
from workbench.jupyter.compose.knob import Brought, brought_lines, rank_of
from workbench.jupyter.compose.knob_help import path_class
from workbench.jupyter.compose.objective_preview import ObjectivePreview
from workbench.jupyter.light_widgets import light


class Section:
    """A heading with a body.

    Args:
        name: the axis, or the field of the recipe.
        body: what opens and closes.
        parts: whose changes are counted and whose knobs are searched.
        knob: the choice whose drop-down and card belong into the heading.
    """

    def __init__(
        self,
        name: str,
        body: ipywidgets.Widget,
        parts: Sequence[ChoiceKnob | Form],
        opened: bool = False,
        knob: ChoiceKnob | None = None,
        toggled: Callable[[bool], None] = lambda _on: None,
    ) -> None:
        self.name, self._body, self._parts = name, body, parts
        self.toggle = light(
            ipywidgets.ToggleButton, value=opened, description=name.capitalize(), tooltip=f"knobs of {name}"
        )
        self.toggle.add_class("lab-toggle")
        self.toggle.observe(lambda _change: self._arrange(), names="value")
        self.badge = light(ipywidgets.HTML)
        self.badge.add_class("lab-badge")
        self.help: ipywidgets.ToggleButton | None = None
        heading: list[ipywidgets.Widget] = [self.toggle]
        if knob is not None:
            self.help = light(ipywidgets.ToggleButton, description="?", tooltip=f"what the chosen {name} does")
            self.help.add_class("lab-help")
            self.help.observe(lambda change: toggled(change["new"]), names="value")
            heading += [knob.picker, self.badge, self.help]
        else:
            heading += [self.badge]
        self.heading = light(ipywidgets.HBox, heading)
        self.heading.add_class("lab-heading")
        if knob is not None:
            self.heading.add_class(path_class(knob.path))
            knob.reset.move(self.heading)
        # How many knobs a search found in here; None while nobody searches.
        self._found: int | None = None
        self.widget = light(ipywidgets.VBox, [self.heading])
        self.widget.add_class("lab-section")
        self._arrange()

    @classmethod
    def of_choice(
        cls,
        name: str,
        knob: ChoiceKnob,
        opened: bool = False,
        toggled: Callable[[bool], None] = lambda _on: None,
        preview: ObjectivePreview | None = None,
    ) -> Section:
        """Return the section of one axis: the drop-down moves up into the heading, a preview stands under the knobs."""
        # The row keeps its body and the error line; the picker has one place on the page only.
        knob.widget.children = tuple(child for child in knob.widget.children if child is not knob.picker)
        body = knob.widget if preview is None else light(ipywidgets.VBox, [knob.widget, preview])
        section = cls(name, body, [knob], opened, knob, toggled)
        if preview is not None:
            section.toggle.observe(lambda change: preview.open_up(change["new"]), names="value")
        # Whoever picks another choice wants to see what can be set of it.
        knob.picked = lambda: setattr(section.toggle, "value", True)
        return section

    @property
    def changes(self) -> int:
        """Knobs in here that differ from the baseline."""
        return sum(part.changes for part in self._parts)

    @property
    def brought(self) -> list[Brought]:
        """Knobs in here that differ because another choice brought its own values."""
        return [each for part in self._parts for each in part.brought]

    def add(self, widget: ipywidgets.Widget) -> None:
        """Put a widget that is no knob of the recipe at the end of the body."""
        self._body = light(ipywidgets.VBox, [self._body, widget])
        self._arrange()

    def update(self, problems: list[Problem], changes: int, brought: Sequence[Brought] = ()) -> None:
        """Show counts of changed and brought knobs and problems, and open when a problem would stay hidden."""
        mine = [p for p in problems if p.path == self.name or p.path.startswith(self.name + ".")]
        bad = f"<span class='lab-bad'>{len(mine)} to fix</span>" if mine else ""
        title = html.escape("; ".join(["knobs that you changed", *brought_lines(brought)]))
        text = (
            # In a narrow column the word gives way to the name of the choice.
            f"<span title='{title}'>{changes}<i> changed</i>{f' +{len(brought)}' if brought else ''}</span>"
            if changes
            else ""
        )
        # One of them: beside something wrong, the count of changes is no news.
        self.badge.value = bad or text
        if mine:
            self.toggle.value = True

    def search(self, words: Sequence[str]) -> int:
        """Show only the knobs that hold all of these words, and the body while there are any; returns how many."""
        found = sum(part.show(words) for part in self._parts)
        self._found = found if words else None
        self._arrange()
        return found

    def rank(self, words: Sequence[str]) -> int:
        """Return how well its name, or that of the best knob in here, is what a search asks for."""
        return min(rank_of(self.name, words), *(part.rank(words) for part in self._parts))

    def _arrange(self) -> None:
        shown = self.toggle.value if self._found is None else self._found > 0
        self.widget.children = (self.heading, self._body) if shown else (self.heading,)
