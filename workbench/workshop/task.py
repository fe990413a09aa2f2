"""A task that is set for a room: a budget, a text that nobody trains on, and one entry for each recipe.

``<runs>/tasks/<name>.json`` describes it, ``<name>.txt`` holds its text, and ``<name>/<recipe hash>.json`` an entry. An
entry holds its recipe, so it can be launched again after its run was deleted. No torch.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from workbench.base.errors import RunError
from workbench.base.text import plain
from workbench.choices.progress import Budget
from workbench.launchers.queue.ticket import present_owner
from workbench.store.folder import read_object, write_json

FOLDER = "tasks"
SCHEMA = 1
FEWEST_CHARACTERS = 2000
"""Least length of a text: a score of less says little."""
MOST_BYTES = 4 << 20
"""Largest text: scoring more takes longer than a lesson has."""
OBJECTIVES = ("causal", "masked")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,47}")


@dataclass(frozen=True)
class Task:
    """A task.

    Attributes:
        name: of its files. title: for people. rules: free text of the owner's.
        amount, unit: of the budget. Seconds are core seconds: those of training times the threads of the run.
        objective: ``causal`` or ``masked``; scores of the two cannot be compared.
        owner: who set it. made_at: Unix seconds.
    """

    name: str
    title: str
    amount: float
    unit: str
    objective: str = "causal"
    rules: str = ""
    owner: str = ""
    made_at: float = 0.0

    @property
    def budget(self) -> str:
        """Return the budget in words."""
        text = str(Budget(amount=self.amount, unit=self.unit))
        return f"{text.removesuffix('seconds')}core seconds" if self.unit == "seconds" else text


@dataclass(frozen=True)
class Entry:
    """A run that was entered.

    Attributes:
        run, name, owner: of the run. recipe_hash, recipe: of what trained it.
        bits_per_byte: of the task's text; the leaderboard's order, comparable between tokenizers.
        loss: nats per scored token. scored: tokens. floor: bits per byte of word frequencies; None: unknown.
        used: of the task's budget, in its unit. overlap: share of the text's 13-grams that stand in the training text.
        entered_at: Unix seconds.
    """

    run: str
    name: str
    owner: str
    recipe_hash: str
    bits_per_byte: float
    loss: float
    scored: int
    used: float
    overlap: float
    floor: float | None = None
    entered_at: float = 0.0
    recipe: dict[str, Any] = field(default_factory=dict)


def new_task(
    root: Path, name: str, budget: str, text: Path, *, title: str = "", objective: str = "causal", rules: str = ""
) -> Task:
    """Set a task; its text is copied into the runs folder.

    Args:
        root: the runs folder. budget: such as ``"60 seconds"``, ``"600 steps"``, ``"1M tokens"``.
        text: a UTF-8 file that no run has trained on.

    Raises:
        RunError: the name is no legal one or taken, or budget, objective or text make no sense.
    """
    if not _NAME.fullmatch(name):
        raise RunError(f"task '{plain(name)}': a name has small letters, digits, - and _, at most 48")
    if objective not in OBJECTIVES:
        raise RunError(f"objective '{plain(objective)}' is none of {', '.join(OBJECTIVES)}")
    try:
        spent = Budget.model_validate(budget)
    except ValueError:
        raise RunError(f"budget '{plain(budget)}': write '60 seconds', '600 steps' or '1M tokens'") from None
    try:
        content = text.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise RunError(f"text {text} cannot be read as UTF-8: {error}") from None
    if not FEWEST_CHARACTERS <= len(content) <= MOST_BYTES:
        raise RunError(f"text {text} has {len(content):,} characters; give {FEWEST_CHARACTERS:,} to {MOST_BYTES:,}")
    task = Task(name, title or name, spent.amount, spent.unit, objective, rules, present_owner(), time.time())
    folder = root / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{name}.txt").open("x", encoding="utf-8") as copy:
            copy.write(content)
        (folder / name).mkdir(exist_ok=True)
        # Learners with other accounts enter as well.
        with suppress(PermissionError):
            (folder / name).chmod(root.stat().st_mode & 0o7777)
        write_json(folder / f"{name}.json", {"schema": SCHEMA, **asdict(task)})
    except FileExistsError:
        raise RunError(f"there is a task '{name}' already; give another name, or delete {folder / name}.*") from None
    except OSError as error:
        raise RunError(f"the task cannot be kept in {folder}: {error.strerror or error}") from None
    return task


def tasks(root: Path) -> list[Task]:
    """Return the tasks of a runs folder, the oldest first; damaged ones are left out."""
    found = filter(None, (_read_task(path) for path in (root / FOLDER).glob("*.json")))
    return sorted(found, key=lambda task: (task.made_at, task.name))


def task_named(root: Path, name: str) -> Task:
    """Return a task.

    Raises:
        RunError: there is none of that name; those that there are, are named.
    """
    task = _read_task(root / FOLDER / f"{name}.json") if _NAME.fullmatch(name) else None
    if task is None:
        there = ", ".join(each.name for each in tasks(root)) or "none; `workbench task new NAME` sets one"
        raise RunError(f"no task '{plain(name)}' in {root}; there are: {there}")
    return task


def documents(root: Path, task: Task) -> list[str]:
    """Return the text of a task in documents: its paragraphs, joined to some thousand characters each.

    Raises:
        RunError: it is gone.
    """
    path = root / FOLDER / f"{task.name}.txt"
    try:
        paragraphs = re.split(r"\n\s*\n", path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError) as error:
        raise RunError(f"the text of task '{task.name}' cannot be read: {error}") from None
    return list(_joined(each.strip() for each in paragraphs if each.strip()))


def _joined(paragraphs: Iterator[str] | Any, longest: int = 4000) -> Iterator[str]:
    held = ""
    for each in paragraphs:
        if held and len(held) + len(each) > longest:
            yield held
            held = ""
        held = f"{held}\n\n{each}" if held else each
    if held:
        yield held


def entries(root: Path, task: Task) -> list[Entry]:
    """Return the leaderboard of a task: the lowest bits per byte first; of equal ones, who came first."""
    found = filter(None, (_read_entry(path) for path in (root / FOLDER / task.name).glob("*.json")))
    return sorted(found, key=lambda entry: (entry.bits_per_byte, entry.entered_at))


def entry_of(root: Path, task: Task, recipe_hash: str) -> Entry | None:
    """Return the entry of a recipe; None where there is none."""
    return next((each for each in entries(root, task) if each.recipe_hash == recipe_hash), None)


def recipe_fields(root: Path, name: str, recipe_hash: str) -> dict[str, Any]:
    """Return the recipe of an entry, as its fields.

    Raises:
        RunError: no such task, or no such entry.
    """
    entry = entry_of(root, task_named(root, name), recipe_hash)
    if entry is None:
        raise RunError(f"task '{plain(name)}' has no entry of recipe '{plain(recipe_hash)}'; the board lists them")
    return entry.recipe


def keep(root: Path, task: Task, entry: Entry) -> None:
    """Keep an entry, the first of its recipe.

    Raises:
        RunError: its recipe has an entry already, or it cannot be written.
    """
    path = root / FOLDER / task.name / f"{entry.recipe_hash}.json"
    aside = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        write_json(aside, {"schema": SCHEMA, **asdict(entry)})
        try:
            # Unlike a rename it replaces nothing: of two who enter at once, one is the first.
            os.link(aside, path)
        finally:
            aside.unlink(missing_ok=True)
    except FileExistsError:
        raise RunError(taken(task, _read_entry(path), entry.recipe_hash)) from None
    except OSError as error:
        raise RunError(f"the entry cannot be kept in {path.parent}: {error.strerror or error}") from None


def taken(task: Task, entry: Entry | None, recipe_hash: str) -> str:
    """Return the sentence for whoever enters a recipe that has an entry."""
    by = "" if entry is None else f", run {entry.run} of {entry.owner} at {entry.bits_per_byte:.4f} bits per byte"
    return f"recipe {recipe_hash} has its entry in task '{task.name}' already{by}; change a knob to enter another"


def _read_task(path: Path) -> Task | None:
    raw = read_object(path)
    try:
        task = Task(**{each.name: raw[each.name] for each in fields(Task) if each.name in raw})
        return task if task.name == path.stem and isinstance(task.amount, int | float) and task.budget else None
    except (TypeError, ValueError):
        return None


def _read_entry(path: Path) -> Entry | None:
    raw = read_object(path)
    try:
        entry = Entry(**{each.name: raw[each.name] for each in fields(Entry) if each.name in raw})
        return entry if isinstance(entry.bits_per_byte, float) and entry.recipe_hash == path.stem else None
    except TypeError:
        return None
