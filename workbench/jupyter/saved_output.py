"""The output of a widget in a saved notebook, for whoever opens it where no page knows the widget any more."""

from __future__ import annotations

from html import escape
from typing import Any

VIEW = "application/vnd.jupyter.widget-view+json"

NOT_DRAWN = (
    "Where JupyterLab shows this line, install workbench in the environment that JupyterLab runs in, and restart it."
)


def view_bundle(model_id: str, text: str, html: str = "") -> dict[str, Any]:
    """Return the MIME bundle of a live widget.

    Args:
        text: one line for where nothing of ours can be drawn.
        html: the same as HTML without scripts; the text by default.
    """
    view = {"version_major": 2, "version_minor": 0, "model_id": model_id}
    return {VIEW: view, "text/html": html or f"<p>{escape(text)}</p>", "text/plain": text}
