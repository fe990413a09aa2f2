"""What the browser's console says while a test runs: every error and warning, but for the known ones of others."""

from __future__ import annotations

import re

from playwright.sync_api import ConsoleMessage, Error, Page

KNOWN = (
    # JupyterLab: started without terminals, on a busy machine, its kernel restarted or gone.
    r"warning: Disabling terminals plugin because they are not available on the server",
    r"warning: Plugin \S+ \(with \d+ dependants\) took [\d.]+ms to activate\.",
    r"warning: Plugin \S+ is taking too long to activate\.",
    r"warning: Connection lost, reconnecting in \d+ seconds\.",
    r"(error|warning): WebSocket connection to '\S+/channels\?\S*' failed: .*",
    r"error: Failed to load resource: .* 404 \(Not Found\) <\S+/api/(kernels|sessions)/\S+>",
    # Its debugger asks the kernel of a notebook that comes to the front, also one that was shut down.
    r"uncaught: Kernel is dead\n.*\.requestDebug .*",
    # A comm that is closed, or its kernel ended, before the kernel has answered that it has a subshell for it.
    r"warning: Subshell identifier not available in the closeout sequence, .*",
    r"uncaught: Error: Canceled future for create_subshell_request message before replies were done.*",
    r"uncaught: Canceled future for create_subshell_request message before replies were done.*",
    # Two pages on one kernel: each hears what it answers the other.
    r"error: Comm not found for comm id \S+",
    # A notebook opened without the kernel, or even the kind of kernel, that its widgets came from.
    r"error: Error: widget model not found\n.*/jupyterlab-manager/.*",
    r"warning: No exact match found for \S+, using kernel \S+ that matches language=python",
    # Jupyter's server remembers static files by name alone: a font that JupyterLab and Notebook 7 both bring.
    r"error: Failed to load resource: .* 403 \(Forbidden\) <\S+/static/(lab|notebook)/\w+\.woff2>",
    # ipywidgets tells new children of a box their size when all have loaded, also one that was replaced meanwhile: the
    # forms of a preset that was passed by while its name was typed.
    r"error: TypeError: Cannot read properties of null \(reading 'processLuminoMessage'\)\n.*/jupyterlab-manager/.*",
    # anywidget gives a page two seconds to load a widget's module, too few on a busy machine (seen at a load of nine on
    # two cores). Ours then hear their kernel without it (connected.js), but it has said so by then.
    r"uncaught: \[anywidget\] Failed to initialize model\.\n.*",
    # Plotly draws parallel coordinates with WebGL, which Chromium without a GPU calls slow.
    r"warning: \[\.WebGL-\w+\]GL Driver Message .*ReadPixels.*",
    # Its widget measures a figure a moment later, when the panel around it may have been closed.
    r"uncaught: Resize must be passed a displayed plot div element\.\n.*/jupyterlab-plotly/.*",
    # Notebook 7.
    r"uncaught: Command 'filebrowser:open-path' not registered\.\n.*",
    r"warning: Menu entry for command '\S+' is duplicated\.",
    r"warning: \[yjs#509\] Not same Y\.Doc",
    r"uncaught: Cannot read properties of undefined \(reading 'schema'\)\n.*",
    # Voila 0.5: it is built on JupyterLab 4.2, says so for every extension, and takes its icons from a CDN.
    r"warning: (Unsatisfied version|No satisfying version|\[ Federation Runtime \]) .*",
    r"warning: Failed to create module: package: @jupyter-notebook/lab-extension; module: \./extension",
    r"error: Error: The getter for the shared module is not a function\..*",
    # It ends its kernel when its page is left, which a test may have ended before.
    r"error: Failed to load resource: .* 404 \(Not Found\) <\S+/voila/api/shutdown/\S+>",
    r"error: Failed to load resource: net::ERR_\w+ <https://(cdn\.jsdelivr\.net|cdnjs\.cloudflare\.com)/\S+>",
)
"""Whole messages, as patterns, that others cause; of a resource that did not load with its address."""


class Console:
    """Collects what a page complains about.

    Attributes:
        said: every warning, error and uncaught exception so far, as ``kind: text``.
    """

    def __init__(self, page: Page) -> None:
        self.said: list[str] = []
        self._page = page
        page.on("console", self._heard)
        page.on("pageerror", self._uncaught)

    def close(self) -> None:
        """Hear no more."""
        self._page.remove_listener("console", self._heard)
        self._page.remove_listener("pageerror", self._uncaught)

    def _uncaught(self, error: Error) -> None:
        self.said.append(f"uncaught: {error}\n{error.stack}")

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            # The message itself does not say what could not be loaded.
            where = f" <{message.location['url']}>" if message.text.startswith("Failed to load resource") else ""
            self.said.append(f"{message.type}: {message.text}{where}")

    @property
    def complaints(self) -> list[str]:
        """Return complaints that are not known, each once."""
        return [text for text in dict.fromkeys(self.said) if not any(re.fullmatch(k, text, re.DOTALL) for k in KNOWN)]
