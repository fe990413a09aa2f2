"""A picture beside each live view, for whoever opens the notebook without its kernel; hidden while the view is there.

JupyterLab saves no widget state unless told to (Settings > Save Widget State Automatically), so the live view of a
notebook that was saved while its run went on would be "model not found" the next day, and nothing on GitHub. This
output stands right below it, is drawn anew now and then, and brings the rules by which one of the two is seen. Where a
page does not trust a notebook and drops the rules, it shows no widgets either.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from html import escape
from typing import Any

DRAW_EVERY_SECONDS = 60.0
"""A drawing takes half a second of the kernel's time: one percent at this distance."""
_CHILD, _LIVE = ".jp-OutputArea-child", ".jp-OutputArea-output :is(.lm-Widget, .jupyter-widgets)"
RULES = (
    "<style>"
    f"{_CHILD}:has({_LIVE}) + {_CHILD}:has(.wb-saved),"
    # "Error displaying widget: model not found", or "Loading widget..." for ever: an output without an element.
    f"{_CHILD}:not(:has(.jp-OutputArea-output > *)):has(+ {_CHILD} .wb-saved :is(img, table, hr))"
    "{display:none}</style>"
)
"""Rules that hide a live view or its picture, in the classes of JupyterLab, Notebook 7 and Voila."""
_EMPTY = {"text/html": '<div class="wb-saved"></div>', "text/plain": ""}
_PLACE = {"text/html": f'{RULES}<div class="wb-saved"></div>', "text/plain": ""}
STANDS_ABOVE = {"text/html": f'{RULES}<div class="wb-saved"><hr hidden></div>', "text/plain": ""}
"""Below a live view whose static form stands above it: takes the view away where it is dead, and shows nothing."""

Publish = Callable[..., None]
# One thread for all drawings: the C library gives each thread memory of its own, of which 15 MB and more stay, for up
# to eight threads per core (a kernel that watched one run for half an hour had grown by 300 MB).
_DRAWER = ThreadPoolExecutor(1, thread_name_prefix="static-pictures")


class SavedPicture:
    """Pictures under display ids of their own.

    Args:
        draw: makes the picture as HTML without scripts; called from a thread of its own, as it takes its time.
        publish: takes a MIME bundle, a display id and ``update``.
        when: what was going on when it was drawn, for the line above it.
        again: what brings the live view back, asked for at each drawing.
    """

    def __init__(
        self,
        draw: Callable[[], str],
        publish: Publish,
        when: str = "while training went on",
        again: Callable[[], str] = lambda: "run this cell again",
    ) -> None:
        self._draw, self._publish, self._when, self._again = draw, publish, when, again
        self._ids: list[str] = []
        self._drawn_at = float("-inf")
        self._drawing, self._planning = threading.Lock(), threading.Lock()
        self._planned = False
        self._ended, self._woken = threading.Event(), threading.Event()

    def show(self) -> None:
        """Make room for the picture in the present cell."""
        # Now, while the cell runs: an output that a thread adds later would land in whatever cell runs then.
        self._ids.append(f"workbench-{uuid.uuid4().hex}")
        self._publish(_PLACE, self._ids[-1])

    def refresh(self, *, now: bool = False) -> None:
        """Draw it anew; returns at once.

        Args:
            now: what it shows has changed as a whole; else as soon as it is time to.
        """
        with self._planning:
            if now:
                self._drawn_at = float("-inf")
                self._woken.set()
            if not self._ids or self._ended.is_set() or self._planned:
                return
            self._planned = True
        threading.Thread(target=self._refresh, name="workbench-saved-picture", daemon=True).start()

    def clear(self) -> None:
        """Take the picture away: the live view gives way to its own static form."""
        self.end()
        with self._drawing:
            for display_id in self._ids:
                self._publish(_EMPTY, display_id, update=True)
            self._ids.clear()

    def end(self) -> None:
        """Draw no more; what was drawn stays."""
        self._ended.set()
        self._woken.set()

    def _refresh(self) -> None:
        self._woken.wait(max(0.0, self._drawn_at + DRAW_EVERY_SECONDS - time.monotonic()))
        # One at a time, and none after the end: a picture that comes late would stand beside the final one.
        with self._drawing:
            # From here on a change is one of after the picture.
            self._planned, self._drawn_at = False, time.monotonic()
            self._woken.clear()
            if self._ended.is_set():
                return
            try:
                html = _DRAWER.submit(self._draw).result()
            except (OSError, ValueError):
                return  # the run was deleted, or its files are being moved: the last picture stays
            if not self._ended.is_set():
                bundle: dict[str, Any] = {
                    "text/html": saved_html(html, self._when, self._again()),
                    "text/plain": "saved picture",
                }
                for display_id in self._ids:
                    self._publish(bundle, display_id, update=True)


def saved_html(summary: str, when: str, again: str) -> str:
    """Return the picture with a line on what it is and what to do.

    Args:
        summary: HTML without scripts. when: what was going on. again: what brings the live view back; text.
    """
    now = time.strftime("%Y-%m-%d %H:%M")
    return (
        f'{RULES}<div class="wb-saved"><p>Saved {now}, {when}. The live view needs a kernel: '
        f"{escape(again)} to have it.</p>{summary}</div>"
    )
