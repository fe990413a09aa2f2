"""One axis in the composer: a heading that opens and closes, the choice, its knobs, and a "?" for its card."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets

from workbench.choices.choice import Problem
from workbench.ui.form import ChoiceKnob
from workbench.ui.method_card import MethodCard


class Section:
    """A heading with a body.

    Args:
        name: the axis, or the field of the recipe.
        body: what opens and closes.
        changes: how many knobs in it differ from the baseline.
        opened: whether the body is shown at first.
        knob: the choice whose drop-down and card belong into the heading.
    """

    def __init__(
        self,
        name: str,
        body: ipywidgets.Widget,
        changes: Callable[[], int],
        opened: bool = False,
        knob: ChoiceKnob | None = None,
    ) -> None:
        self.name, self._body, self._count, self._knob = name, body, changes, knob
        self.toggle = ipywidgets.ToggleButton(value=opened, description=name.capitalize(), tooltip=f"knobs of {name}")
        self.toggle.add_class("lab-toggle")
        self.toggle.observe(lambda _change: self._arrange(), names="value")
        self.badge = ipywidgets.HTML()
        self.badge.add_class("lab-badge")
        self.help: ipywidgets.ToggleButton | None = None
        heading: list[ipywidgets.Widget] = [self.toggle]
        if knob is not None:
            self.help = ipywidgets.ToggleButton(description="?", tooltip=f"what the chosen {name} does")
            self.help.add_class("lab-help")
            self.help.observe(lambda _change: self._arrange(), names="value")
            heading += [knob.picker, self.badge, self.help]
        else:
            heading += [self.badge]
        self.heading = ipywidgets.HBox(heading)
        self.heading.add_class("lab-heading")
        self._card: MethodCard | None = None
        self.widget = ipywidgets.VBox([self.heading])
        self.widget.add_class("lab-section")
        self._arrange()

    @classmethod
    def of_choice(cls, name: str, knob: ChoiceKnob, opened: bool = False) -> Section:
        """The section of one axis: the drop-down moves up into the heading."""
        # The row keeps its body and the error line; the picker has one place on the page only.
        knob.widget.children = tuple(child for child in knob.widget.children if child is not knob.picker)
        return cls(name, knob.widget, lambda: knob.changes, opened, knob)

    @property
    def changes(self) -> int:
        """Knobs in here that differ from the baseline."""
        return self._count()

    def update(self, problems: list[Problem]) -> None:
        """Show counts of changed knobs and problems, and open when a problem would stay hidden."""
        mine = [p for p in problems if p.path == self.name or p.path.startswith(self.name + ".")]
        count = self.changes
        bad = f"<span class='lab-bad' title='problems'>{len(mine)} wrong</span>" if mine else ""
        text = f"<span title='knobs changed'>{count} changed</span>" if count else ""
        # One of them: beside something wrong, the count of changes is no news.
        self.badge.value = bad or text
        if mine:
            self.toggle.value = True
        if self._card is not None:
            self._show_card()

    def _show_card(self) -> None:
        if self._knob is not None and self._knob.choice is not None and self._card is not None:
            self._card.show(self._knob.choice)

    def _arrange(self) -> None:
        shown: list[ipywidgets.Widget] = [self.heading]
        if self.help is not None and self.help.value:
            # Made at the first "?": a card brings the page's formula typesetter along, and most are never asked for.
            self._card = self._card or MethodCard()
            self._show_card()
            shown.append(self._card)
        if self.toggle.value:
            shown.append(self._body)
        self.widget.children = tuple(shown)
