"""The recipe as text in two languages, of which one or none is shown, and what was typed there and is not applied."""

from __future__ import annotations

from collections.abc import Callable

from workbench.jupyter.compose.composition import Composition
from workbench.jupyter.compose.differences import change_text
from workbench.jupyter.compose.recipe_editor import Edited, RecipeEditor
from workbench.jupyter.compose.recipe_text import as_json, as_python, read_json
from workbench.jupyter.compose.sources import RUN
from workbench.recipes.recipe import Recipe

VIEWS = {
    "Form": "change knobs",
    "Python": "Python that builds this recipe, to copy",
    "JSON": "the recipe as a run's folder holds it; edit it, or paste one",
    "Difference": "knobs beside those of the preset, of another preset or of a run",
}
"""Views of a recipe: their names and tooltips."""


class RecipeTexts:
    """Editors of one composition.

    Args:
        apply: takes over what was read.
        edited: called when :attr:`edited` is another.

    Attributes:
        python, json: the editors.
        shown: the one on the page, None where the knobs or differences are.
    """

    def __init__(
        self, composition: Composition, apply: Callable[[Recipe], None], edited: Callable[[], None] = lambda: None
    ) -> None:
        self._composition, self._edited = composition, edited
        self.python = RecipeEditor("Python", None, apply, self._preview, self._typed)
        self.json = RecipeEditor("JSON", read_json, apply, self._preview, self._typed)
        self.shown: RecipeEditor | None = None
        self._told: Edited | None = None

    @property
    def edited(self) -> Edited | None:
        """Text on the page that is not applied. Of a view that is not shown nothing is meant to be launched."""
        return None if self.shown is None else self.shown.edited

    @property
    def left(self) -> list[str]:
        """Languages whose text was edited, is not applied, and is not on the page."""
        return [text.language for text in (self.python, self.json) if text is not self.shown and text.edited]

    def show(self, view: str) -> RecipeEditor | None:
        """Bring the editor of that name up to date; None where it is no editor's."""
        state, sound = self._composition.state, self._composition.recipe is not None
        self.shown = {"Python": self.python, "JSON": self.json}.get(view)
        if self.shown is self.python:
            preset = None if state.source is None or state.source.startswith(RUN) else state.source
            self.python.show(as_python(state.fields, state.base.to_dict(), preset), sound)
        elif self.shown is self.json:
            self.json.show(as_json(state.fields), sound)
        # Whoever shows a view says next what stands in it.
        self._told = self.edited
        return self.shown

    def typed(self, draft: str) -> None:
        """Hear what the page's text was when a button was pressed, which may come before the edit itself."""
        # The page alone knows what was typed: that it was applied already tells the same draft.
        if self.shown is not None and draft != self.shown.draft:
            self.shown.draft = draft

    def take(self) -> None:
        """Take over what is shown and not applied, where it holds a recipe."""
        if self.shown is not None:
            self.shown.take()

    def _typed(self) -> None:
        # Only then: telling takes back what was asked beside Launch.
        if self.edited != self._told:
            self._told = self.edited
            self._edited()

    def _preview(self, recipe: Recipe) -> str:
        return change_text(self._composition.state.fields, recipe.to_dict())
