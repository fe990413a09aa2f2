"""A drop-down of recipes: those at hand, every preset, and the runs of the runs folder as it is when it is opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import traitlets

from workbench.jupyter.bundles import BundledWidget, code
from workbench.jupyter.compose.sources import RUN, run_label
from workbench.jupyter.light_widgets import Light
from workbench.recipes import presets


class SourcePicker(Light, BundledWidget):
    """Picks where a recipe comes from; see :mod:`workbench.jupyter.compose.sources` for what the values mean.

    Args:
        tooltip: on hover, and for screen readers.
        runs: lists ``(source, words)`` of the runs; called when the page is about to open the list.
        own: words of the entry whose value is None, which stands first; no such entry when empty.

    Attributes:
        value: the picked source, None for ``own``.
    """

    _code = code("source_picker")

    label = traitlets.Unicode().tag(sync=True)
    # Not `tooltip`: the page takes a widget that has one for a control with a description, and draws an error.
    hint = traitlets.Unicode().tag(sync=True)
    own = traitlets.Unicode().tag(sync=True)
    presets = traitlets.List(traitlets.Unicode()).tag(sync=True)
    value = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    words = traitlets.Unicode(help="what a run that is picked is called, until the runs are listed").tag(sync=True)

    def __init__(
        self,
        label: str,
        tooltip: str,
        runs: Callable[[], Sequence[tuple[str, str]]],
        own: str = "",
        value: str | None = None,
    ) -> None:
        super().__init__(label=label, hint=tooltip, own=own, presets=presets.names(), value=value, words=_words(value))
        self._runs = runs
        self.on_msg(self._on_message)

    @traitlets.observe("value")
    def _named(self, change: Any) -> None:
        self.words = _words(change["new"])

    def _on_message(self, _widget: Any, content: Any, _buffers: Any) -> None:
        # By message, not as a trait: a thousand names have no business in a saved notebook.
        if content == {"list": "runs"}:
            self.send({"runs": [list(run) for run in self._runs()]})
        # By message, too: the page holds a trait back while an earlier pick is worked on, and what is typed next would
        # overtake it.
        elif isinstance(content, dict) and "pick" in content:
            self.value = content["pick"]


def _words(source: str | None) -> str:
    return run_label(source.removeprefix(RUN)) if source and source.startswith(RUN) else ""
