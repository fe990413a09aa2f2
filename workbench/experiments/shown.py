"""A race or a sweep at one moment, as whoever draws it live needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import plotly.graph_objects as go


@dataclass(frozen=True)
class Pick:
    """What can be opened of an experiment: a setting that was tried, or one run.

    Attributes:
        key: what pictures and pages call it, see :meth:`Experiment.run_of`. title: for people.
        single: it is one run; a click on its dot opens that.
    """

    key: str
    title: str
    single: bool = False


@dataclass(frozen=True)
class Shown:
    """One reading of an experiment.

    Attributes:
        title, status: in words. lines: what it says so far, the first of them how far it is; more: the finer points.
        table: its arms or points as HTML without scripts, every name escaped.
        figures: titles of its pictures by key. figure: draws one. numbers: the same one as an HTML table.
        picks: settings or runs that can be opened; best: key of the one to begin with.
        going: runs that train or wait for their turn, also those of one that was cancelled a moment ago.
    """

    title: str
    status: str
    lines: Sequence[str]
    table: str
    figures: Mapping[str, str]
    figure: Callable[[str], go.Figure]
    numbers: Callable[[str], str]
    more: Sequence[str] = ()
    picks: Sequence[Pick] = ()
    best: str | None = None
    going: int = 0
