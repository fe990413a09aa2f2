"""Widgets that cost the page nothing before they are shown, and share what they do not change.

A recipe's form has hundreds of knobs. Each widget is a model in the page and a message that opens it, each change after
that one message more, and each message takes kernel, server and page some time. The Lab sent 862 of them to show
half of its widgets, and two thirds of a form's models were layouts and styles at their defaults.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import ipywidgets
import traitlets

W = TypeVar("W", bound=ipywidgets.DOMWidget)
_kinds: dict[type[ipywidgets.Widget], type[ipywidgets.Widget]] = {}
_shared: dict[type[ipywidgets.Widget], ipywidgets.Widget] = {}
# Two threads that show a widget first at the same moment would both tell the page of it, under two names.
_coming = threading.RLock()


class Light(ipywidgets.DOMWidget):
    """A widget that the page hears of when something that is shown first holds it, as it is then.

    Until then it is an object of the kernel alone: it is built, filled and changed without a message. Its layout and
    style are those of all others like it, unless it was given its own, and nobody may change them.

    Attributes:
        has_left: it has left the page, or will never come there.
    """

    has_left = False

    @traitlets.default("layout")
    def _plain_layout(self) -> ipywidgets.Widget:
        return _one(ipywidgets.Layout)

    @traitlets.default("style")
    def _plain_style(self) -> ipywidgets.Widget:
        return _one(type(self).style.klass)

    @property
    def model_id(self) -> str:
        """The page's name for it; asked for by whatever shows it, before that is shown itself."""
        self._come()
        return str(super().model_id)

    def open(self) -> None:
        """Wait: ipywidgets calls this from the constructor, when nobody has seen the widget yet."""

    def _come(self) -> None:
        with _coming:
            if self.comm is None and not self.has_left:
                super().open()

    def close(self) -> None:
        """Leave the page."""
        self.has_left = True
        super().close()

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        # Shown by itself: ipywidgets names the model there without asking for it.
        self._come()
        return super()._repr_mimebundle_(**kwargs)


def light(make: type[W], *arguments: Any, **traits: Any) -> W:
    """Return a widget of ipywidgets as a :class:`Light` one.

    Args:
        make: its class.
        *arguments, **traits: for its constructor; a ``layout`` or ``style`` of its own is kept.
    """
    if make not in _kinds:
        _kinds[make] = type(make.__name__, (Light, make), {"__module__": __name__})
    widget: W = _kinds[make](*arguments, **traits)
    return widget


def introduce(*widgets: ipywidgets.Widget) -> None:
    """Have the page hear of widgets now, although nothing shows them yet.

    For what a thread will show: a page that is loaded again while a thread tells it of a new widget takes that before
    the layout it needs, waits two seconds for it in vain, and shows a broken icon from then on.
    """
    for widget in widgets:
        _ = widget.model_id


def _one(kind: type[ipywidgets.Widget]) -> ipywidgets.Widget:
    if kind not in _shared:
        # A Lab that is closed closes what it holds, layouts and styles included; the other Labs still need these.
        _shared[kind] = type(kind.__name__, (kind,), {"close": _stay})()
    return _shared[kind]


def _stay(_widget: ipywidgets.Widget) -> None:
    """In place of ``close``: a handful of models for as long as the kernel lives."""
