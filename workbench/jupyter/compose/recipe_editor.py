"""A recipe as text that can be edited: problems stand by their lines, nothing typed is lost, Apply takes it over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import traitlets

from workbench.jupyter.bundles import BundledWidget, code
from workbench.jupyter.compose.text_problems import TextError
from workbench.jupyter.light_widgets import Light
from workbench.recipes.recipe import Recipe


class Edited(NamedTuple):
    """A text that was edited and is not applied.

    Attributes:
        language: what it is called.
        change: what applying it would do; empty where it holds no recipe.
        why: it holds none; else empty.
    """

    language: str
    change: str
    why: str


class RecipeEditor(Light, BundledWidget):
    """One language's view of a recipe.

    Args:
        language: what the text is called, ``Python`` or ``JSON``.
        read: reads such a text, or raises :class:`TextError`; None for one that can only be copied.
        apply: takes over what was read, on Apply or Ctrl+Enter.
        preview: says in a few words what applying would change.
        edited: called when :attr:`edited` has changed because something was typed.

    Attributes:
        text: of the recipe as it is now.
        draft: what the user made of it and has not applied, else None; written by the page alone.
        problems: ``[line, message]`` of whichever of the two is shown.
        note: what applying the draft would do.
    """

    _code = code("recipe_editor")

    language = traitlets.Unicode().tag(sync=True)
    readonly = traitlets.Bool(False).tag(sync=True)
    text = traitlets.Unicode().tag(sync=True)
    draft = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    problems = traitlets.List(traitlets.List()).tag(sync=True)
    note = traitlets.Unicode().tag(sync=True)

    def __init__(
        self,
        language: str,
        read: Callable[[str], Recipe] | None,
        apply: Callable[[Recipe], None],
        preview: Callable[[Recipe], str],
        edited: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(language=language, readonly=read is None)
        self._read, self._apply, self._preview, self._tell = read, apply, preview, edited
        # The draft that was applied last, which the page has not forgotten yet.
        self._taken: str | None = None
        self.on_msg(self._on_message)
        self.observe(self._drafted, names="draft")

    @property
    def edited(self) -> Edited | None:
        """The text that was typed here and is not applied; None where nothing was."""
        if self.draft is None or self.draft == self._taken:
            return None
        return Edited(self.language, self.note, "; ".join(f"line {line}: {text}" for line, text in self.problems))

    def show(self, text: str, sound: bool) -> None:
        """Show the recipe's text; a draft stays what it is.

        Args:
            text: of the recipe as it is now.
            sound: it is known to hold a recipe, and need not be read again.
        """
        self.text = text
        if self._read is None or (sound and self.draft is None):
            self.problems, self.note = [], ""
        else:
            self._judge()

    def apply(self, text: str) -> bool:
        """Take over ``text``; False, with :attr:`problems` set, when it holds no recipe."""
        found = self._judged(text)
        if found is None:
            return False
        self._taken = text
        self._apply(found)
        return True

    def take(self) -> bool:
        """Take over what was typed and not applied; False where it holds no recipe."""
        if self.edited is None or self.draft is None:
            return True
        return self._answer(self.draft)

    def _drafted(self, _change: Any) -> None:
        if self.draft != self._taken:
            self._taken = None
        self._judge()
        self._tell()

    def _judge(self) -> None:
        found = self._judged(self.text if self.draft is None else self.draft)
        self.note = "" if found is None or self.draft is None else self._preview(found)

    def _judged(self, text: str) -> Recipe | None:
        if self._read is None:
            self.problems = [[1, f"the {self.language} is shown to be copied; edit the JSON or the form"]]
            return None
        try:
            found = self._read(text)
        except TextError as error:
            self.problems = [list(problem) for problem in error.problems]
            return None
        self.problems = []
        return found

    def _answer(self, text: str) -> bool:
        # Not a trait: the page forgets its draft when it hears this, however late that is, but not what came after it.
        taken = self.apply(text)
        self.send({"applied": taken, "text": text})
        return taken

    def _on_message(self, _widget: Any, content: Any, _buffers: Any) -> None:
        if isinstance(content, dict) and isinstance(content.get("apply"), str):
            self._answer(content["apply"])
