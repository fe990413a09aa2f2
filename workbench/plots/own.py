"""Pictures of other packages, which every report shows below its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.base.plugins import load_plugins

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from workbench.store.view import RunView


@dataclass(frozen=True)
class Plot:
    """A picture of runs.

    Attributes:
        help: how to read it, in a sentence; stands below it.
        make: a pure function of views and an axis (``step``, ``tokens``, ``seconds`` or ``flops``).
    """

    help: str
    make: Callable[[Sequence[RunView], str], go.Figure]


_PLOTS: dict[str, Plot] = {}


def register(name: str, help: str, make: Callable[[Sequence[RunView], str], go.Figure]) -> None:
    """Make a picture known by its name; see :class:`Plot`."""
    _PLOTS[name] = Plot(help, make)


def plots() -> Mapping[str, Plot]:
    """Return the pictures of installed packages by name.

    Raises:
        RecipeError: a package with one cannot be imported.
    """
    load_plugins("workbench.plots")
    return _PLOTS
