"""Tells whether a page would draw the widgets of the present cell, or a program runs it that keeps the notebook."""

from __future__ import annotations

import os
from typing import Any

from IPython.core.getipython import get_ipython


def headless() -> bool:
    """Return whether papermill, ``nbconvert --execute`` or the like runs this cell; False outside of notebooks.

    Told by the messaging protocol: a client that sends ``allow_stdin: false`` has nobody who could answer. Voila sends
    it as well, but goes on to draw the widgets; it names itself in the kernel's environment.
    """
    shell: Any = get_ipython()
    # A terminal has no parent message.
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    allowed = (parent.get("content") or {}).get("allow_stdin", True)
    return not allowed and not os.environ.get("SERVER_SOFTWARE", "").startswith("voila/")


def in_page() -> bool:
    """Return whether a page shows the output of the present cell; False in a terminal and in plain Python, too."""
    return getattr(get_ipython(), "kernel", None) is not None and not headless()
