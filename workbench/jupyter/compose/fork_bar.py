"""In the place of the presets while a fork is edited: of which run, from which of its checkpoints, and the way back."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import ipywidgets

from workbench.client.fork_point import steps_of
from workbench.jupyter.light_widgets import Light, light
from workbench.store.folder import RunFolder
from workbench.store.labels import name_of


class ForkBar(Light, ipywidgets.VBox):
    """Two short rows, since the forms below need the height; empty until :meth:`show`.

    Args:
        moved: called with the step of another checkpoint that the user chose.
        ended: called when the user wants a new run instead.
    """

    def __init__(self, moved: Callable[[int], None], ended: Callable[[], None]) -> None:
        self._moved = moved
        self.text, self.budget = light(ipywidgets.HTML), light(ipywidgets.HTML)
        self.steps = light(ipywidgets.Dropdown, tooltip="checkpoint that the fork goes on from")
        self.steps.observe(self._chosen, names="value")
        self.back = light(
            ipywidgets.Button, description="New run instead", tooltip="keep the recipe, but begin at step 0"
        )
        self.back.on_click(lambda _button: ended())
        rows = ((self.text, self.steps), (self.budget, self.back))
        self._rows = tuple(light(ipywidgets.HBox, row) for row in rows)
        super().__init__(())
        self.add_class("lab-fork-bar")
        self._quiet = False

    def show(self, folder: RunFolder, step: int) -> None:
        """Offer the checkpoints of a run; ``step`` is the one in use."""
        steps = steps_of(folder)
        name = html.escape(name_of(folder))
        self.text.value = f"<span title='{name} ({html.escape(folder.id)})'>Fork of <b>{name}</b></span>"
        labels = {at: f"from step {at:,}" + (" (newest)" if at == steps[0] else "") for at in steps}
        self._quiet = True
        self.steps.options = [(labels[at], at) for at in steps]
        self.steps.value = step
        self._quiet = False
        self.children = self._rows

    def say_budget(self, text: str) -> None:
        """Show the budget of the fork, where that is not the budget of the run."""
        whole = html.escape(text)
        self.budget.value = f"<span title='{whole}'>{whole}</span>"

    def hide(self) -> None:
        """Show nothing."""
        self.set_trait("children", ())

    def _chosen(self, change: Any) -> None:
        if not self._quiet and change["new"] is not None:
            self._moved(change["new"])
