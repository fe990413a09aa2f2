"""What a widget's page says and hears, without a page."""

from __future__ import annotations

from typing import Any

import comm
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


class Opened(list[dict[str, Any]]):
    """Messages that go to a page, by content, those that open a model included."""

    @property
    def models(self) -> list[str]:
        """Name of each model that was opened, in that order."""
        return [message["state"]["_model_name"] for message in self if "method" not in message and "state" in message]


def published(monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Every message of the widgets that are made from now on."""
    sent = Opened()

    class Wire(comm.base_comm.BaseComm):  # type: ignore[misc]
        def publish_msg(self, msg_type: str, data: Any = None, *_: Any, **__: Any) -> None:
            sent.append(data or {})

    monkeypatch.setattr(comm, "create_comm", Wire)
    return sent
