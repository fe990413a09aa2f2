"""A recipe as text that can be edited: problems stand by their lines, nothing typed is lost, Apply takes it over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import traitlets

from workbench.ui.bundles import script
from workbench.ui.compose.recipe_reader import Read
from workbench.ui.compose.text_problems import TextError
from workbench.ui.light_widgets import Light


class RecipeEditor(Light, anywidget.AnyWidget):
    """One language's view of a recipe.

    Args:
        language: what the text is called, ``Python`` or ``JSON``.
        read: reads such a text, or raises :class:`TextError`.
        apply: takes over what was read, on Apply or Ctrl+Enter.
        preview: says in a few words what applying would change.

    Attributes:
        text: of the recipe as it is now.
        draft: what the user made of it and has not applied, else None; written by the page alone.
        problems: ``[line, message]`` of whichever of the two is shown.
        note: what applying the draft would do.
    """

    _esm = script("recipe_editor")

    language = traitlets.Unicode().tag(sync=True)
    text = traitlets.Unicode().tag(sync=True)
    draft = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    problems = traitlets.List(traitlets.List()).tag(sync=True)
    note = traitlets.Unicode().tag(sync=True)

    def __init__(
        self, language: str, read: Callable[[str], Read], apply: Callable[[Read], None], preview: Callable[[Read], str]
    ) -> None:
        super().__init__(language=language)
        self._read, self._apply, self._preview = read, apply, preview
        self.on_msg(self._on_message)
        self.observe(lambda _change: self._judge(), names="draft")

    def show(self, text: str, sound: bool) -> None:
        """Show the recipe's text; a draft stays what it is.

        Args:
            text: of the recipe as it is now.
            sound: it is known to hold a recipe, and need not be read again.
        """
        self.text = text
        if sound and self.draft is None:
            self.problems, self.note = [], ""
        else:
            self._judge()

    def apply(self, text: str) -> bool:
        """Take over ``text``; False, with :attr:`problems` set, when it holds no recipe."""
        found = self._judged(text)
        if found is None:
            return False
        self._apply(found)
        return True

    def _judge(self) -> None:
        found = self._judged(self.text if self.draft is None else self.draft)
        self.note = "" if found is None or self.draft is None else self._preview(found)

    def _judged(self, text: str) -> Read | None:
        try:
            found = self._read(text)
        except TextError as error:
            self.problems = [list(problem) for problem in error.problems]
            return None
        self.problems = []
        return found

    def _on_message(self, _widget: Any, content: Any, _buffers: Any) -> None:
        if isinstance(content, dict) and isinstance(content.get("apply"), str):
            # The answer, not a trait: the page forgets its draft when it hears this, however late that is.
            self.send({"applied": self.apply(content["apply"])})
