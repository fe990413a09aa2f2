"""An experiment at one moment: its plan, the state of its runs, and everything that is said and drawn of them."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

from workbench.base.text import aligned, plain
from workbench.experiments.experiment_folder import ENDED
from workbench.experiments.plan import Plan
from workbench.experiments.readings import trained_on
from workbench.experiments.result import ExperimentResult

if TYPE_CHECKING:
    import plotly.graph_objects as go

_CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0"
P = TypeVar("P", bound=Plan)
S = TypeVar("S")


class Pick(NamedTuple):
    """A setting or a run of an experiment that can be opened.

    Attributes:
        key: its name in pictures and pages, see :meth:`Experiment.run_of`. title: for people.
        single: it is one run; a click on its dot opens that.
    """

    key: str
    title: str
    single: bool = False


class Drawing(NamedTuple):
    """A picture of an experiment.

    Attributes:
        title: for a list of pictures. figure: draws it. numbers: the same as an HTML table. caption: below it.
    """

    title: str
    figure: Callable[[], go.Figure]
    numbers: Callable[[], str]
    caption: str = ""


@dataclass(frozen=True)
class Shown:
    """An experiment for a page that draws it live.

    Attributes:
        title, status: in words. lines: progress first, then what it says; more: the finer points.
        table: its arms or points as HTML without scripts, every name escaped.
        drawings: its pictures by key, the most useful first.
        picks: settings or runs that can be opened; best: key of the one to begin with.
        going: runs that train or wait for their turn, also those of one that was cancelled a moment ago.
    """

    title: str
    status: str
    lines: Sequence[str]
    table: str
    drawings: Mapping[str, Drawing]
    more: Sequence[str] = ()
    picks: Sequence[Pick] = ()
    best: str | None = None
    going: int = 0


@dataclass(frozen=True)
class Snapshot(ABC, Generic[P, S]):
    """An experiment at one moment.

    Attributes:
        plan: as asked. now: the state of its runs. status: of the experiment.
        note: for a reader of its numbers. error: why it failed.
    """

    plan: P
    now: S
    status: str
    note: str = ""
    error: str = ""
    noun: ClassVar[str]
    kind_of_result: ClassVar[type[ExperimentResult]]
    drawn_by: ClassVar[str]
    """The module that draws it, with ``drawings``, ``png`` and ``sections``; it loads Plotly."""

    @property
    def ended(self) -> bool:
        """True where nobody drives it any more."""
        return self.status in ENDED

    @property
    @abstractmethod
    def progress(self) -> str:
        """Its progress in one line."""

    @property
    @abstractmethod
    def said(self) -> list[str]:
        """Its results in sentences."""

    @property
    def more(self) -> list[str]:
        """The finer points: the last lines of :attr:`said`, or others."""
        return []

    @property
    @abstractmethod
    def brief(self) -> str:
        """Its results in a few words, for one line of a table."""

    @property
    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """Its runs, points or settings, one mapping per row."""

    @abstractmethod
    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of text."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return the keys of its result that only its kind has."""

    @property
    def picks(self) -> list[Pick]:
        """Settings and runs that can be opened."""
        return []

    @property
    def best(self) -> str | None:
        """Key of the pick to begin with."""
        return None

    @property
    def going(self) -> int:
        """Number of runs that train or wait for their turn."""
        return sum(each.status == "going" for _, each in self.now.runs)  # type: ignore[attr-defined]

    @property
    def title(self) -> str:
        """Its kind and its name."""
        return f"{self.noun.capitalize()} {plain(self.plan.name, 60)}"

    @property
    def summary(self) -> str:
        """All that it says, one line each."""
        head = f"{self.noun} {self.plan.id} ({plain(self.plan.name, 60)}) {self.status}: {self.progress}"
        return "\n".join(filter(None, (head, self.note, *self.said)))

    def table_text(self) -> str:
        """Return :meth:`table` for terminals; empty before the first row."""
        titles, lines = self.table()
        return aligned([titles, *lines]) if lines else ""

    def table_html(self) -> str:
        """Return :meth:`table` without scripts, every name escaped; empty before the first row."""
        titles, lines = self.table()
        return wrapped_table(titles, lines) if lines else ""

    def result(self) -> ExperimentResult:
        """Return all of it, JSON-able."""
        plan = self.plan
        return self.kind_of_result({
            self.noun: plan.id, "name": plan.name, "status": self.status, **self.facts(), "score": plan.score,
            "seeds": plan.seeds, "warnings": plan.warnings, "note": self.note, "error": self.error,
            "summary": self.summary,
        })  # fmt: skip

    def trained_on(self) -> list[dict[str, Any]]:
        """List the machines of its runs."""
        return trained_on(self.plan.run_folder(job) for job, _ in self.now.runs)  # type: ignore[attr-defined]

    def shown(self) -> Shown:
        """Return it for a page that draws it live."""
        more = self.more
        lines = [line for line in (self.progress, self.note, *self.said) if line and line not in more]
        drawings = importlib.import_module(self.drawn_by).drawings(self)
        return Shown(self.title, self.status, lines, self.table_html(), drawings, [line.strip() for line in more],
                     self.picks, self.best, self.going)  # fmt: skip


def wrapped_table(titles: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table without scripts or style sheet, every cell escaped; its titles wrap, so that panes need no scroll.

    Example:
        >>> wrapped_table(["a"], [["<b>"]]).count("&lt;b&gt;")
        1
    """
    head = "".join(f"<th scope='col' style='{_CELL}'>{escape(text)}</th>" for text in titles)
    rows = ("".join(f"<td style='{_CELL}'>{escape(text)}</td>" for text in line) for line in lines)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
