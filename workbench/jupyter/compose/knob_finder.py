"""The search box over a composer's knobs, and the line that says what it found."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import ipywidgets

from workbench.base.text import many
from workbench.choices.choice import registry
from workbench.jupyter.compose.form import ChoiceKnob
from workbench.jupyter.compose.section import Section
from workbench.jupyter.light_widgets import light


class KnobFinder:
    """Hides every knob that a search does not ask for.

    Attributes:
        text: the box. found: what it found, over the knobs. others: what else there is, below.

    Args:
        sections: whose knobs are searched.
        box: where the sections stand, and from which those without a find are taken.
        axes: the choice of each axis, whose present kind tells which knobs another one would bring.
    """

    def __init__(self, sections: Sequence[Section], box: ipywidgets.Box, axes: Mapping[str, ChoiceKnob]) -> None:
        self._sections, self._box, self._axes = sections, box, axes
        self.text = light(ipywidgets.Text, placeholder="find (/)", tooltip="find a knob by its name or help (/)")
        self.text.add_class("lab-search")
        self.text.observe(lambda _change: self.search(), names="value")
        self.found, self.others = (light(ipywidgets.HTML) for _ in range(2))
        for line in (self.found, self.others):
            line.add_class("lab-found")

    def clear(self) -> None:
        """Show every knob again."""
        self.text.value = ""

    def refresh(self) -> None:
        """Search again, among what has been chosen meanwhile."""
        if self.text.value:
            self.search()

    def search(self) -> None:
        """Show the knobs that hold every word in the box, and say how many those are."""
        words = search_words(self.text.value)
        found = [section.search(words) for section in self._sections]
        kept = [section for section, count in zip(self._sections, found, strict=True) if count or not words]
        if words:
            kept.sort(key=lambda section: section.rank(words))
        others = elsewhere(words, {axis: knob.kind for axis, knob in self._axes.items()})
        count = sum(found)
        text = f"{many(count, 'knob')} found" if count else "no knob of what is chosen has these words"
        self.found.value, self.others.value = text, html.escape(f"not chosen now: {', '.join(others)}")
        shown: tuple[ipywidgets.Widget, ...] = tuple(section.widget for section in kept)
        if words:
            # What could be chosen comes last: it is no knob that one can set now.
            shown = (self.found, *shown, *([self.others] if others else []))
        if self._box.children != shown:
            self._box.children = shown


def search_words(text: str) -> list[str]:
    """Return a search as lower-case words, all of which must be found; ``_`` and ``.`` separate as blanks do."""
    return text.lower().replace("_", " ").replace(".", " ").split()


def elsewhere(words: list[str], chosen: Mapping[str, str], most: int = 6) -> list[str]:
    """Return knobs of choices that are not chosen now, as ``theta (depth: progressive_drop)``.

    Args:
        words: as :func:`search_words` gives them; nothing is found without any.
        chosen: kind by axis.
        most: how many are told.

    Example:
        >>> elsewhere(["theta"], {"depth": "full"})
        ['theta (depth: progressive_drop)']
    """
    homes: dict[tuple[str, str], list[str]] = {}
    for axis, kind in chosen.items():
        for other, model in registry(axis).items():
            for name, info in model.model_fields.items():
                text = f"{name} {info.description or ''}".replace("_", " ").lower()
                if other != kind and name != "kind" and words and all(word in text for word in words):
                    homes.setdefault((name, axis), []).append(other)
    found = [f"{name.replace('_', ' ')} ({axis}: {', '.join(kinds[:4])})" for (name, axis), kinds in homes.items()]
    return found[:most] + ([f"and {len(found) - most} more"] if len(found) > most else [])
