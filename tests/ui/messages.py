"""What a widget's page says and hears, without a page."""

from __future__ import annotations

from typing import Any

import ipywidgets
import pytest


def say(widget: ipywidgets.Widget, content: Any) -> None:
    """A custom message from the page, as the kernel hands it to the widget."""
    widget._handle_custom_msg(content, [])


def hear(widget: ipywidgets.Widget, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every custom message that is sent to the page from now on."""
    heard: list[Any] = []
    monkeypatch.setattr(widget, "send", lambda content, buffers=None: heard.append(content))
    return heard
