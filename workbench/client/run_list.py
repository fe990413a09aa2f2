"""All runs of a runs folder, newest first: what the tables of terminal and notebook show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from html import escape
from pathlib import Path
from typing import Any

from workbench.base.errors import RunError
from workbench.base.text import plain
from workbench.client.comparison import scored_text
from workbench.client.run import Run
from workbench.client.summary import describe, owner_of
from workbench.store.find import called_so, is_path, nearest, run_ids
from workbench.store.folder import RunFolder, runs_root, stamp_in
from workbench.telemetry.scored_text import PART_SCORE

# Every row reads two files; more of them scroll out of sight anyway.
SHOWN = 30


class RunList(list[Run]):
    """Runs, newest first; shows itself as a table."""

    def __init__(self, runs: list[Run], root: Path) -> None:
        super().__init__(runs)
        self.root = root

    def table(self, limit: int | None = None) -> list[dict[str, str]]:
        """Return one row of texts per run (the newest ``limit``), read now.

        Columns that no row fills are left out; owners are shown once there are two.
        """
        rows = [describe(run.folder) | {"owner": owner_of(run.folder)} for run in self[:limit]]
        filled = {column for row in rows for column, text in row.items() if text}
        if len({row["owner"] for row in rows}) < 2:
            filled -= {"owner"}
        return [{column: text for column, text in row.items() if column in filled} for row in rows]

    def tagged(self, *tags: str) -> RunList:
        """Return the runs that have all of these tags."""
        wanted = set(tags)
        return RunList([run for run in self if wanted <= set(run.tags)], self.root)

    def text(self, limit: int | None = SHOWN, width: int | None = None) -> str:
        """Return the newest ``limit`` rows of the table as text (None: all).

        Args:
            width: characters of a line (None: as many as it takes, and one line a run). Where a row needs more, each
                run has two lines; why it failed, stalled or was lost is a line of its own.
        """
        rows = self.table(limit)
        if not rows:
            return f"no runs in {self.root}"
        reasons = [""] * len(rows) if width is None else [row.pop("why", "") for row in rows]
        columns = list(rows[0])
        widths = [max(len(column), *(len(row[column]) for row in rows)) for column in columns]
        if width is not None and sum(widths) + 2 * (len(widths) - 1) > width:
            head, lines = "", [_two_lines(row, width) for row in rows]
        else:
            head, *lines = (
                "  ".join(text.ljust(size) for text, size in zip(row, widths, strict=True)).rstrip()
                for row in (columns, *(row.values() for row in rows))
            )
        below = (f"\n  {plain(reason, (width or 0) - 2)}" if reason else "" for reason in reasons)
        return "\n".join([*([head] if head else []), *map("".join, zip(lines, below, strict=True))]) + self._more(
            len(rows)
        )

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        rows = self.table(SHOWN)
        if not rows:
            return f"<em>no runs in {escape(str(self.root))}</em>"
        # Escaped throughout: names come from anybody's recipes and must not become markup of this notebook.
        head = "".join(f"<th style='text-align:left'>{escape(column)}</th>" for column in rows[0])
        body = "".join("<tr>" + "".join(map(_cell, *zip(*row.items(), strict=True))) + "</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{escape(self._more(len(rows)))}"

    def _more(self, shown: int) -> str:
        older = f"\n... and {len(self) - shown} older" if len(self) > shown else ""
        texts = {text for run in self[:shown] if (text := scored_text(run.folder))}
        apart = f"\nscored on {len(texts)} different texts or tokenizers: held-out losses compare within one alone"
        return older + (apart if len(texts) > 1 else "")


def runs(runs_dir: str | Path | None = None) -> RunList:
    """List every run in the runs folder, newest first; damaged ones are ``lost``.

    Args:
        runs_dir: the runs folder; else ``$WORKBENCH_RUNS``, else ``./runs``. A missing one holds no runs.
    """
    root = runs_root(runs_dir)
    # By id rather than by the folder's own time, which every heartbeat changes.
    folders = sorted((RunFolder(root / run_id) for run_id in run_ids(root)), key=_age, reverse=True)
    return RunList([Run(folder) for folder in folders], root)


def _cell(column: str, text: str) -> str:
    why = f" title='{PART_SCORE}'" if column == "held-out" and text.startswith("~") else ""
    return f"<td style='text-align:left'{why}>{escape(text)}</td>"


def _two_lines(row: dict[str, str], width: int) -> str:
    """Return a run's id, whole so that it can be copied, and below it the facts that fit into a line."""
    run, *facts = (
        text if column in ("run", "name", "status", "progress") else f"{column} {text}"
        for column, text in row.items()
        if text
    )
    return f"{run}\n  {plain(', '.join(facts), width - 2)}"


def _age(folder: RunFolder) -> tuple[str, float]:
    """Sorts by the time in the id; within one second by when the recipe was written."""
    try:
        written = folder.recipe.stat().st_mtime
    except OSError:
        written = 0.0
    return (stamp_in(folder.id), written)


_GLOB = frozenset("*?[")


def select(given: Iterable[Any], runs_dir: str | Path | None = None) -> list[Run]:
    """Find runs in the order in which they are given, each once; those of one text oldest first.

    Args:
        given: runs, folders of runs, ids or unique beginnings of them, names (of all runs that are called so
            now, else were launched so), globs over ids and names (``"bert*"``), and lists of these.
        runs_dir: the runs folder of ids, names and globs; else ``$WORKBENCH_RUNS``, else ``./runs``.

    Raises:
        RunError: nothing is given, or it names no run; the message has the nearest.
    """
    found = list(dict.fromkeys(run for each in given for run in _runs(each, runs_dir)))
    if not found:
        known = runs(runs_dir)
        holds = f"{len(known)}, see `wb.runs()` or `workbench runs`" if known else "none"
        raise RunError(f"no run is given; {known.root} holds {holds}. Launch one, or name another folder with runs_dir")
    return found


def _runs(given: Any, runs_dir: str | Path | None) -> Iterator[Run]:
    if isinstance(given, Run):
        yield given
    elif isinstance(given, RunFolder):
        yield Run(given)
    elif isinstance(given, str | Path):
        known = runs(runs_dir)
        yield from [Run(given)] if is_path(given, (run.name for run in known)) else _called(str(given), known)
    elif isinstance(given, Iterable):
        for each in given:
            yield from _runs(each, runs_dir)
    else:
        raise RunError(
            f"{given!r} is no run: give what wb.launch or wb.runs() returned, an id, a name, or a glob such as 'bert*'"
        )


def _called(text: str, known: RunList) -> list[Run]:
    pattern = bool(_GLOB & set(text))
    so = {text, *called_so(text, {run.id: run.name for run in known})}
    found = [run for run in reversed(known) if run.id in so]
    if not found and pattern:
        found = [run for run in reversed(known) if fnmatchcase(run.id, text) or fnmatchcase(run.name, text)]
    if not found and text and not pattern:
        found = [run for run in reversed(known) if run.id.startswith(text)]
        if len(found) > 1:
            raise RunError(
                f"'{text}' begins {len(found)} run ids, {', '.join(run.id for run in found[-5:])}; write more of it, "
                f"or '{text}*' for all of them"
            )
    if not found:
        names = list(dict.fromkeys(name for run in known for name in (run.name, run.id)))
        raise RunError(
            f"no run in {known.root} has the id or name '{text}'{nearest(text, names)}. `workbench runs` lists them"
        )
    return found
