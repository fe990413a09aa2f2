"""A live plot as a Plotly figure, below the view: to explore, to keep in the notebook, to work on in Python."""

from __future__ import annotations

import math
import threading
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import ipywidgets

from workbench.base.errors import check_known
from workbench.base.json_lines import finite
from workbench.jupyter.light_widgets import light
from workbench.store.view import RunView

if TYPE_CHECKING:
    import plotly.graph_objects as go

_EMPTY = {"text/html": '<div class="wb-figure-place"></div>', "text/plain": ""}
_PLOTLY = "application/vnd.plotly.v1+json"

Publish = Callable[..., None]


class Figures:
    """Places for the figures of one widget.

    Args:
        views: reads the runs. publish: takes a MIME bundle, a display id and ``update``.
        tell: takes a notice for the page: a text and whether it is an error, or the title of a figure that is there.

    Attributes:
        latest: the last figure made, to go on with in Python.
    """

    def __init__(
        self, views: Callable[[], Sequence[RunView]], publish: Publish, tell: Callable[[str, bool, str], None]
    ) -> None:
        self._views, self._publish, self._tell = views, publish, tell
        self._ids: list[str] = []
        self._making = threading.Lock()
        self._output: ipywidgets.Output | None = None
        self.latest: go.Figure | None = None

    @property
    def output(self) -> ipywidgets.Output:
        """Shows the figure where the view is a part of another widget, and no cell's output is its own."""
        if self._output is None:
            self._output = light(ipywidgets.Output)
        return self._output

    def show(self) -> None:
        """Make room in the present cell."""
        # Now, while the cell runs: an output that a thread adds later would land in whatever cell runs then.
        self._ids.append(f"workbench-{uuid.uuid4().hex}")
        self._publish(_EMPTY, self._ids[-1])

    def receive(self, message: dict[str, Any]) -> None:
        """Make the figure that a page asks for. Returns at once; importing Plotly alone takes a second."""
        threading.Thread(target=self._make, args=(message,), name="workbench-figure", daemon=True).start()

    def clear(self) -> None:
        """Take the figure away from the page; :attr:`latest` stays."""
        if self._ids:
            self._publish(_EMPTY, self._ids[-1], update=True)
        else:
            self.output.outputs = ()

    def close(self) -> None:
        """Let go of what was made."""
        self.latest = None
        if self._output is not None:
            self._output.close()

    def _make(self, message: dict[str, Any]) -> None:
        with self._making:
            try:
                wanted = message.get("runs")
                views = [v for v in self._views() if not isinstance(wanted, list) or v.id in wanted]
                self.latest = figure_of(views, message)
                self._put(self.latest)
            except Exception as error:  # the widget is where the user who asked looks
                self._tell(f"no figure: {error}", True, "")
            else:
                self._tell("", False, str(self.latest.layout.title.text or "figure"))

    def _put(self, figure: go.Figure) -> None:
        bundle = bundle_of(figure)
        if self._ids:
            # The latest place: with one view in two cells it is the one that was asked from, mostly.
            self._publish(bundle, self._ids[-1], update=True)
        else:
            self.output.outputs = ({"output_type": "display_data", "data": bundle, "metadata": {}},)


def bundle_of(figure: go.Figure) -> dict[str, Any]:
    """Return a figure as JupyterLab draws it, and as text."""
    title = figure.layout.title.text or "figure"
    drawn = finite(figure.to_plotly_json())
    if any(trace.type == "parcoords" for trace in figure.data):
        # At its usual two, Plotly looks for the line under the pointer at half of the pointer's place.
        drawn["config"] = {"plotGlPixelRatio": 1}
    return {_PLOTLY: drawn, "text/plain": f"Plotly figure: {title}"}


def figure_of(views: Sequence[RunView], message: dict[str, Any]) -> go.Figure:
    """Return the Plotly figure of what a panel shows.

    Args:
        views: the runs, in the order of their colours.
        message: of the page: ``view`` (loss, speed, scalar, layers, ranks), ``x``, ``window``, ``dark`` (its
            theme) and what the view needs.

    Raises:
        ValueError: an unknown view, x or quantity, or no runs.
    """
    from workbench.plots.figure import template
    from workbench.plots.layers import layers_figure
    from workbench.plots.loss import loss_figure
    from workbench.plots.ranks import ranks_figure
    from workbench.plots.scalar import scalar_figure
    from workbench.plots.speed import speed_figure

    x, log = str(message.get("x", "step")), message.get("log") is True
    makers: dict[str, Callable[[], go.Figure]] = {
        "loss": lambda: loss_figure(
            views, x, log=log, smoothing=_number(message.get("smoothing")), target=_target(message)
        ),
        "speed": lambda: speed_figure(views, x),
        "scalar": lambda: scalar_figure(views, str(message.get("name", "lr")), x, log=log),
        "ranks": lambda: ranks_figure(views[0], x),
        "layers": lambda: layers_figure(views[0], str(message.get("quantity", "state")), x),
    }
    view = str(message.get("view"))
    check_known("view", view, makers, ValueError)
    if not views:
        raise ValueError("no run to draw")
    figure = makers[view]()
    if message.get("dark") is True:
        figure.update_layout(template=template(dark=True))
    window = message.get("window")
    if isinstance(window, list) and len(window) == 2:
        figure.update_xaxes(range=[_number(edge) for edge in window])
    return figure


def _target(message: dict[str, Any]) -> float | None:
    target = message.get("target")
    return float(target) if isinstance(target, int | float) else None


def _number(value: Any) -> float:
    found = float(value) if isinstance(value, int | float) else 0.0
    return found if math.isfinite(found) else 0.0
