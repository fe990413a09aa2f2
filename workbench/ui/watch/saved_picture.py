"""A picture beside each live view, for whoever opens the notebook without its kernel; hidden while the view is there.

JupyterLab saves no widget state unless told to (Settings > Save Widget State Automatically), so the live view of a
notebook that was saved while its run went on would be "model not found" the next day, and nothing on GitHub. This
output stands in the same cell, is drawn anew now and then, and a rule of the page (``monitor.css``) hides it as long as
its cell holds a live view.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

DRAW_EVERY_SECONDS = 60.0
"""A drawing takes half a second of the kernel's time: one percent at this distance."""
_EMPTY = {"text/html": '<div class="wb-keepsake"></div>', "text/plain": ""}

Publish = Callable[..., None]


class SavedPicture:
    """Pictures under display ids of their own.

    Args:
        draw: makes the picture as HTML without scripts; called from a thread of its own, as it takes its time.
        publish: takes a MIME bundle, a display id and ``update``.
    """

    def __init__(self, draw: Callable[[], str], publish: Publish) -> None:
        self._draw, self._publish = draw, publish
        self._ids: list[str] = []
        self._drawn_at = float("-inf")
        self._drawing = threading.Lock()
        self._ended = threading.Event()

    def show(self) -> None:
        """Make room for the picture in the present cell."""
        # Now, while the cell runs: an output that a thread adds later would land in whatever cell runs then.
        self._ids.append(f"workbench-{uuid.uuid4().hex}")
        self._publish(_EMPTY, self._ids[-1])

    def refresh(self) -> None:
        """Draw it anew if it is time to; returns at once."""
        if not self._ids or self._ended.is_set() or time.monotonic() - self._drawn_at < DRAW_EVERY_SECONDS:
            return
        self._drawn_at = time.monotonic()
        threading.Thread(target=self._refresh, name="workbench-keepsake", daemon=True).start()

    def clear(self) -> None:
        """The live view gives way to its own static form: no second picture."""
        self._ended.set()
        with self._drawing:
            for display_id in self._ids:
                self._publish(_EMPTY, display_id, update=True)
            self._ids.clear()

    def end(self) -> None:
        """Draw no more; what was drawn stays."""
        self._ended.set()

    def _refresh(self) -> None:
        # One at a time, and none after the end: a picture that comes late would stand beside the final one.
        with self._drawing:
            if self._ended.is_set():
                return
            try:
                html = self._draw()
            except (OSError, ValueError):
                return  # the run was deleted, or its files are being moved: the last picture stays
            if not self._ended.is_set():
                bundle: dict[str, Any] = {"text/html": saved_picture_html(html), "text/plain": "saved picture of a run"}
                for display_id in self._ids:
                    self._publish(bundle, display_id, update=True)


def saved_picture_html(summary: str) -> str:
    """The picture with a line on what it is and what to do; ``summary`` is HTML without scripts."""
    when = time.strftime("%Y-%m-%d %H:%M")
    return (
        f'<div class="wb-keepsake"><p>Saved {when}, while the run went on. The live view needs a kernel: '
        f"run this cell again to watch it.</p>{summary}</div>"
    )
