"""A question of a lesson in a page: options or a field, a button, and what is said to the answer."""

from __future__ import annotations

import uuid
from dataclasses import replace
from html import escape
from typing import Any

import ipywidgets

from workbench.base.errors import first_line
from workbench.jupyter import cell_widgets
from workbench.jupyter.headless import in_page
from workbench.jupyter.light_widgets import Light, light
from workbench.jupyter.page import Page
from workbench.jupyter.saved_output import NOT_DRAWN, view_bundle
from workbench.jupyter.watch.monitor import publish
from workbench.lessons.lesson import Submit
from workbench.lessons.question import Question, Still


class QuestionView(Light, ipywidgets.VBox):
    """One question until it is answered, then its answer.

    Once answered, the output of its cell is replaced by HTML that needs no kernel. A page that was loaded again cannot
    be told to replace an output; there the widget itself shows the answer.

    Args:
        asked: the question. waiting: how it reads in a saved notebook until then.
        button: what the button says. submit: takes an answer. note: in small letters below. hint: said at once.
    """

    def __init__(self, asked: Question, waiting: Still, button: str, submit: Submit, note: str, hint: str = "") -> None:
        self._submit, self._waiting = submit, waiting
        self._display_id = f"workbench-{uuid.uuid4().hex}"
        self.field: Any = (
            light(ipywidgets.RadioButtons, options=asked.options, value=None)
            if asked.options
            else light(ipywidgets.Text, description=asked.unit or "answer", placeholder=asked.legal)
        )
        self.button = light(ipywidgets.Button, description=button, button_style="primary")
        self.said = light(ipywidgets.HTML)
        self.button.on_click(lambda _: self._press())
        title = light(ipywidgets.HTML, f"<strong>{escape(asked.text)}</strong>")
        below = light(ipywidgets.HTML, f"<small>{escape(note)}</small>")
        row = light(ipywidgets.HBox, [self.button, self.said])
        self.page = Page()
        super().__init__([self.page, title, self.field, row, below])
        self.add_class("lab-root")
        self.add_class("lab-lesson")
        self._say(hint)

    def show(self) -> None:
        """Show it in the output of the present cell."""
        still = replace(self._waiting, lines=(*self._waiting.lines, NOT_DRAWN))
        publish(view_bundle(self.model_id, still.text, still.html), self._display_id)
        cell_widgets.shown(self)

    def close(self) -> None:
        """Leave the page."""
        cell_widgets.forget(self)
        super().close()

    def _press(self) -> None:
        answer = self.field.value
        if answer is None or answer == "":
            self._say(
                "Choose one first." if isinstance(self.field, ipywidgets.RadioButtons) else "Type a number first."
            )
            return
        try:
            still, said = self._submit(answer)
        except Exception as error:  # the widget is where the learner who pressed the button looks
            self._say(first_line(error))
            return
        self._say(said)
        if still is not None:
            self.children = [self.page, light(ipywidgets.HTML, still.html)]
            publish(still.bundle, self._display_id, update=True)

    def _say(self, text: str) -> None:
        # A new element each time, with a role that has it read aloud.
        self.said.value = f"<span role='alert'>{escape(text)}</span>" if text else ""


def ask(asked: Question, waiting: Still, button: str, submit: Submit, note: str, hint: str = "") -> None:
    """Ask a question in the page; where there is none, say that it was not answered."""
    if in_page():
        QuestionView(asked, waiting, button, submit, note, hint).show()
    else:
        show(waiting.bundle)


def show(bundle: dict[str, Any]) -> None:
    """Put a MIME bundle into the output of the present cell; print its text outside of notebooks."""
    publish(bundle)
