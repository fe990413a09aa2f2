"""A race or a sweep at one moment, as whoever draws it live needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import plotly.graph_objects as go


@dataclass(frozen=True)
class Shown:
    """One reading of an experiment.

    Attributes:
        title, status: in words. lines: what it says so far, the first of them how far it is; more: the finer points.
        table: its arms or points as HTML without scripts, every name escaped.
        figures: titles of its pictures by key. figure: draws one. numbers: the same one as an HTML table.
        points: index and words of settings whose run or recipe can be opened; best: the one with the lowest score.
    """

    title: str
    status: str
    lines: Sequence[str]
    table: str
    figures: Mapping[str, str]
    figure: Callable[[str], go.Figure]
    numbers: Callable[[str], str]
    more: Sequence[str] = ()
    points: Sequence[tuple[int, str]] = ()
    best: int | None = None
