"""Widgets that share what they do not change: of a form's models two thirds were layouts and styles at their defaults.

A recipe's form has hundreds of knobs, and each model is a message to the page, a view there, and about a millisecond
here: the first look at an optimizer's knobs took 113 ms, most of it for layouts that nobody ever changes.
"""

from __future__ import annotations

from typing import Any, TypeVar

import ipywidgets

W = TypeVar("W", bound=ipywidgets.DOMWidget)
_styles: dict[type[ipywidgets.Widget], type[ipywidgets.Widget] | None] = {}
_shared: dict[type[ipywidgets.Widget], ipywidgets.Widget] = {}


def with_shared_layout(make: type[W], *arguments: Any, **traits: Any) -> W:
    """A widget with the layout and style of all others like it; nobody may change either.

    Args:
        make: its class.
        *arguments, **traits: for its constructor; a ``layout`` or ``style`` of its own is kept.
    """
    style = _style_of(make)
    shared = {"layout": _one(ipywidgets.Layout)} | ({"style": _one(style)} if style else {})
    widget: W = make(*arguments, **(shared | traits))
    return widget


def _style_of(make: type[ipywidgets.Widget]) -> type[ipywidgets.Widget] | None:
    # Remembered: asking a class for its traits takes longer than making the widget.
    if make not in _styles:
        trait = make.class_traits().get("style")
        _styles[make] = None if trait is None else trait.klass
    return _styles[make]


def _one(kind: type[ipywidgets.Widget]) -> ipywidgets.Widget:
    if kind not in _shared:
        # A Lab that is closed closes what it holds, layouts and styles included; the other Labs still need these.
        _shared[kind] = type(kind.__name__, (kind,), {"close": _stay})()
    return _shared[kind]


def _stay(_widget: ipywidgets.Widget) -> None:
    """In place of ``close``: a handful of models for as long as the kernel lives."""
