"""The board as tables: text for a terminal, HTML without scripts for a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from workbench.base.text import aligned, decimal, plain, share_done
from workbench.workshop.board import cell_text

Table = tuple[str, list[tuple[str, ...]]]
"""Title, and rows of which the first has the headings."""


def board_tables(found: Mapping[str, Any], *, every_run: bool = False) -> Iterator[Table]:
    """Yield the tables of a board: runs by owner, then lessons, then leaderboards; empty ones are left out.

    Args:
        every_run: a row for each run of an owner, not for the one to look at alone.
    """
    if found["owners"]:
        yield "Runs by owner", [_OWNERS, *(row for each in found["owners"] for row in _owner(each, every_run))]
    for lesson in found["lessons"]:
        heads = ("learner", *(column["question"] for column in lesson["columns"]))
        yield f"Lesson {lesson['lesson']}", [heads, *(_learner(each, lesson) for each in lesson["learners"])]
    for task in found["tasks"]:
        title = f"Task {task['title']}: {task['budget']}, {task['objective']}"
        yield title, [_ENTRIES, *(_entry(place, each) for place, each in enumerate(task["entries"], 1))]


_OWNERS = ("owner", "run", "state", "done", "held-out loss", "best", "runs")
_ENTRIES = ("place", "owner", "run", "bits per byte", "nats", "word frequencies", "recipe")


def _owner(each: Mapping[str, Any], every_run: bool) -> Iterator[tuple[str, ...]]:
    for place, run in enumerate(each["runs"] if every_run else each["runs"][:1]):
        facts = plain(run["name"]), run["status"], share_done(run["progress"]), decimal(run["heldout_loss"], 3)
        best, words = ("", "") if place else (decimal(each["best"], 3), counts(each))
        yield "" if place else each["owner"], *facts, best, words


def counts(each: Mapping[str, Any]) -> str:
    """Return an owner's runs in words.

    Example:
        >>> counts({"train": 1, "wait": 2, "ended": 0, "lost": 0})
        '1 training, 2 waiting'
    """
    named = (("train", "training"), ("wait", "waiting"), ("ended", "ended"))
    words = [f"{each[key]} {word}" for key, word in named if each[key]]
    return ", ".join(words) + (f" ({each['lost']} failed)" if each["lost"] else "")


def _learner(each: Mapping[str, Any], lesson: Mapping[str, Any]) -> tuple[str, ...]:
    cells = zip(each["cells"], lesson["columns"], strict=True)
    return plain(each["learner"]), *(cell_text(cell, column["unit"]) for cell, column in cells)


def _entry(place: int, each: Mapping[str, Any]) -> tuple[str, ...]:
    floor = decimal(each["floor"], 3)
    numbers = (f"{each['bits_per_byte']:.4f}", f"{each['loss']:.4f}", floor)
    return f"{place}", plain(each["owner"]), plain(each["name"]), *numbers, each["recipe_hash"]


def board_text(found: Mapping[str, Any], *, every_run: bool = False) -> str:
    """Return the board for a terminal."""
    tables = board_tables(found, every_run=every_run)
    parts = [f"{title}\n{aligned(_short(rows))}" for title, rows in tables]
    return "\n\n".join([*parts, *found["notes"]])


def board_html(found: Mapping[str, Any]) -> str:
    """Return the board for a notebook that no page draws."""
    parts = [f"<p><strong>{escape(title)}</strong></p>{_html(rows)}" for title, rows in board_tables(found)]
    return "".join([*parts, *(f"<p>{escape(note)}</p>" for note in found["notes"])])


def _short(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [tuple(plain(cell, 48) for cell in row) for row in rows]


def _html(rows: Sequence[tuple[str, ...]]) -> str:
    def line(row: tuple[str, ...], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag} style='text-align:left'>{escape(cell)}</{tag}>" for cell in row) + "</tr>"

    head, *body = rows
    return f"<table><thead>{line(head, 'th')}</thead><tbody>{''.join(line(row, 'td') for row in body)}</tbody></table>"
