"""Choose where the next launch runs: this machine, several processes of it, or a cluster; refusals appear at once."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable

import ipywidgets

from workbench.base.errors import WorkbenchError
from workbench.jupyter.compose.knob_notes import Note
from workbench.jupyter.light_widgets import light
from workbench.launchers.launcher import Launcher, launcher_named
from workbench.recipes.recipe import Recipe

HERE = "local"
_HELP = ("where Launch trains: local, or local:processes=2 for several processes of this machine; slurm:nodes=2 or "
         "ray:nodes=2 for a cluster; hand: the run is made, and you start its nodes by the command it says; inline: "
         "it ends with this notebook's kernel. Further knobs with commas, as in `workbench launch --on`. No part of "
         "the recipe: a fork goes on where its run was, and a race trains here")  # fmt: skip


def places() -> list[str]:
    """Return the places that are offered here: a cluster where its programs or its address are there."""
    cores = os.cpu_count() or 1
    found = [HERE, *([f"{HERE}:processes={cores}"] if cores > 1 else [])]
    if shutil.which("sbatch"):
        found.append("slurm:nodes=1,processes=1,time_minutes=60")
    if os.environ.get("RAY_ADDRESS"):
        found.append("ray:nodes=1,processes=1")
    return found


class Place:
    """A row of the form for the place of the next launch, as ``launch(on=...)`` reads it.

    Args:
        changed: called when the place is another one, or has answered.

    Attributes:
        widget: the row. text: its field. asking: a cluster has not answered yet.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self.text = light(ipywidgets.Combobox, value=HERE, options=places(), placeholder=HERE,
                          description="where it runs", tooltip=_HELP, description_tooltip=_HELP,
                          continuous_update=False)  # fmt: skip
        self.widget = light(ipywidgets.Box, [self.text])
        self.widget.add_class("lab-knob")
        self._note, self._changed = Note(self.widget), changed
        self._asked: tuple[str, str] | None = None
        self._answer: str | None = ""
        self.text.observe(lambda _change: changed(), names="value")

    @property
    def on(self) -> str:
        """Return the place, as text."""
        return self.text.value.strip() or HERE

    @property
    def asking(self) -> bool:
        """Return True while a cluster has not answered yet."""
        return self._answer is None

    def hindrance(self, recipe: Recipe | None) -> str:
        """Return why a recipe cannot be launched there; that a cluster is being asked, until it has answered."""
        asked = None if recipe is None or self.on == HERE else (self.on, recipe.hash)
        if asked != self._asked:
            self._asked, self._answer = asked, ""
            if recipe is not None and asked is not None:
                self._ask(asked, recipe)
        self._note.say(self._answer or "")
        return f"asking {self.on.partition(':')[0]}" if self._answer is None else self._answer

    def _ask(self, asked: tuple[str, str], recipe: Recipe) -> None:
        try:
            launcher = launcher_named(self.on)
        except WorkbenchError as error:
            self._answer = str(error)
            return
        if launcher.queues:
            # Of this machine, which answers at once.
            self._answer = _refusal(launcher, recipe)
        else:
            self._answer = None
            threading.Thread(target=self._hear, args=(asked, launcher, recipe), name="place", daemon=True).start()

    def _hear(self, asked: tuple[str, str], launcher: Launcher, recipe: Recipe) -> None:
        answer = _refusal(launcher, recipe)
        # Another place, or recipe, was chosen meanwhile.
        if asked == self._asked:
            self._answer = answer
            self._changed()


def _refusal(launcher: Launcher, recipe: Recipe) -> str:
    try:
        launcher.check(recipe)
    except Exception as error:
        # Of a program that is not there, too: this runs in a thread, where nobody would read it.
        return str(error) or type(error).__name__
    return ""
