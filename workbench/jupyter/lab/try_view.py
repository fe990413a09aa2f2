"""Try and Data beside the curves: the watched models are asked, and the rows that they read are shown."""

from __future__ import annotations

import functools
import itertools
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import traitlets

from workbench.base.text import duration_words
from workbench.choices.data.prepare import is_prepared, usual_seconds
from workbench.client.asking import ask, fill, generate
from workbench.client.fork_point import steps_of
from workbench.client.run import Run
from workbench.client.titles import titles
from workbench.jupyter.board import BoardAnswers, Put
from workbench.jupyter.bundles import BundledWidget, code, style
from workbench.jupyter.light_widgets import Light
from workbench.jupyter.runs.runs_table import RunsTable
from workbench.jupyter.steering import place_of
from workbench.recipes.recipe import Recipe

MASK = "[MASK]"
MOST_PINNED = 3
MOST_STEPS = 24
"""Checkpoints at which a pinned sentence is asked: each is a model to load, and a table to read."""
PINNED_TOKENS = 8
"""Tokens of a pinned continuation."""
_KNOBS = ("tokens", "temperature", "top_k", "seed")
Row = tuple[int, str, float | None]
"""Step, answer and its probability, which a continuation has not."""


class TryView(Light, BundledWidget):
    """Four tabs, Watch, Try, Data and Board; with one of the others open, this view stands in the place of the curves.

    What Data shows comes from the server; where that cannot tell, from the process that answers.

    A thread asks the process that answers (:mod:`workbench.client.asking`); what the page asks goes before what is
    pinned.

    Args:
        pinned: called when other sentences are pinned.
        composed: returns the recipe as it stands in the form, None where it is none.
        table: of the runs, for the board. put: puts a recipe into the form, with words about it.

    Attributes:
        recipe: ``name`` and ``hash`` of what is composed, whose rows can be seen before it is a run; else empty.
        runs: those that can be asked: ``id``, ``name``, ``steps`` of their checkpoints, ``served``: name at the server.
        chosen: ids of those that are asked, one or two.
        shown: it stands in the place of the curves.
        pinned: up to :data:`MOST_PINNED` texts.
        over: their best answers: ``text``, ``run``, ``rows`` of step, answer and probability, ``error``.
    """

    _code = code("try")
    _css = style("try")

    recipe = traitlets.Dict().tag(sync=True)
    runs = traitlets.List(traitlets.Dict()).tag(sync=True)
    chosen = traitlets.List(traitlets.Unicode()).tag(sync=True)
    shown = traitlets.Bool().tag(sync=True)
    pinned = traitlets.List(traitlets.Unicode(), maxlen=MOST_PINNED).tag(sync=True)
    over = traitlets.List(traitlets.Dict()).tag(sync=True)

    def __init__(
        self,
        pinned: Callable[[], None] = lambda: None,
        composed: Callable[[], Recipe | None] = lambda: None,
        table: RunsTable | None = None,
        put: Put | None = None,
    ) -> None:
        self._composed = composed
        self._held: dict[str, Run] = {}
        self._told: dict[tuple[str, str], dict[int, Row | None]] = {}
        """By run and text; None: it is being asked."""
        self._errors: dict[tuple[str, str], str] = {}
        self._asked = 0
        # The page, the table's thread and the one that asks.
        self._reading = threading.RLock()
        self._numbers = itertools.count()
        self._todo: queue.PriorityQueue[tuple[int, int, Callable[[], None] | None]] = queue.PriorityQueue()
        self._worker: threading.Thread | None = None
        super().__init__()
        self._board = None if table is None else BoardAnswers(table, lambda message: self.send(message), put)
        self.add_class("lab-try")
        self.on_msg(self._heard)
        self.observe(lambda _change: self.look(), names=["shown", "chosen", "pinned"])
        self.observe(lambda _change: pinned(), names="pinned")

    def compose(self) -> None:
        """Take note of what is composed now; what cannot run has no hash."""
        recipe = self._composed()
        before = self.recipe.get("name", "")
        self.recipe = {"name": before, "hash": ""} if recipe is None else {"name": recipe.name, "hash": recipe.hash}

    def offer(self, runs: Sequence[Run]) -> None:
        """Let these runs be asked; of two, the second stands beside the first."""
        with self._reading:
            self._held = {run.id: run for run in runs}
            self._read()
            here = [run_id for run_id in self.chosen if run_id in self._held]
            self.chosen = [*here, *(run_id for run_id in self._held if run_id not in here)][:2]

    def look(self) -> None:
        """Read which checkpoints there are, and ask what is pinned at new ones.

        A run keeps its newest checkpoints alone, so this goes on beside the curves; it begins when the view is shown.
        """
        if not self.shown and self._worker is None:
            return
        with self._reading:
            self._read()
            for run_id, step, text in self._lacking():
                self._told.setdefault((run_id, text), {})[step] = None
                self._soon(1, functools.partial(self._learn, run_id, step, text))
            self._tell_over()

    def close(self) -> None:
        """Leave the page; the thread ends with the question that it asks."""
        if hasattr(self, "_todo"):
            self._todo.put((-1, next(self._numbers), None))
        super().close()

    def _read(self) -> None:
        names = titles([run.folder for run in self._held.values()])
        self.runs = [
            {"id": run.id, "name": name, "steps": steps_of(run.folder)[::-1], "served": served(run)}
            for run, name in zip(self._held.values(), names, strict=True)
        ]

    def _lacking(self) -> Iterator[tuple[str, int, str]]:
        """Yield what is pinned and not known yet, all texts of a checkpoint together: it is loaded once."""
        for shown in self.runs:
            if shown["id"] in self.chosen:
                for step, text in itertools.product(spread(shown["steps"], MOST_STEPS), self.pinned):
                    key = shown["id"], text
                    if key not in self._errors and step not in self._told.get(key, {}):
                        yield shown["id"], step, text

    def _heard(self, _: Any, message: Any, __: Any) -> None:
        """Take a question of the page. Returns at once."""
        if self._board is not None and self._board.hear(message):
            return
        if isinstance(message, dict) and isinstance(read := message.get("read"), int):
            self._soon(0, lambda: self._read_rows(read, message))
        if isinstance(message, dict) and isinstance(ask := message.get("ask"), int):
            self._asked = ask
            self._soon(0, lambda: self._answer(ask, message))

    def _answer(self, ask: int, message: Mapping[str, Any]) -> None:
        """Ask each run at its step, unless something else was asked since."""
        for place, (run_id, step) in enumerate(message["at"]):
            if ask == self._asked and (run := self._held.get(run_id)) is not None and self.comm is not None:
                self.send({"answered": ask, "place": place} | _answer(run, message["text"], step, message))

    def _read_rows(self, read: int, message: Mapping[str, Any]) -> None:
        """Answer a question about the rows of a run or, where it names none, of what is composed."""
        subject = self._held.get(message["run"]) if message.get("run") else self._composed()
        what = message.get("what")
        if subject is None and not message.get("run"):
            self.send({"read": read, "error": "what is composed cannot run: below the form stands what is to be fixed"})
        if subject is None or what not in ("rows", "find", "facts", "prepare") or self.comm is None:
            return
        try:
            found = _unprepared(subject, what) or ask(
                subject, what, say=lambda line: self.send({"read": read, "said": line}), **message["query"]
            )
        except Exception as error:  # the page is where the user looks
            found = {"error": str(error) or type(error).__name__}
        self.send({"read": read} | found)

    def _learn(self, run_id: str, step: int, text: str) -> None:
        """Ask one run at one checkpoint what is pinned."""
        key, run, row, problem = (run_id, text), self._held.get(run_id), None, ""
        wanted = run_id in self.chosen and text in self.pinned and key not in self._errors
        if run is not None and wanted:
            try:
                row = (step, *_best(run, text, step))
            except Exception as error:  # the page is where the user looks
                # A checkpoint that was deleted meanwhile says nothing about the sentence.
                problem = (str(error) or type(error).__name__) if step in steps_of(run.folder) else ""
        with self._reading:
            if row is not None:
                self._told[key][step] = row
            else:
                del self._told[key][step]
            if problem:
                self._errors[key] = problem
            self._tell_over()

    def _tell_over(self) -> None:
        shown = [(run_id, text) for text in self.pinned for run_id in self.chosen]
        # Pinned again, it is asked again.
        self._errors = {key: self._errors[key] for key in shown if key in self._errors}
        self.over = [
            {
                "run": run_id,
                "text": text,
                "rows": sorted(row for row in self._told.get((run_id, text), {}).values() if row is not None),
                "error": self._errors.get((run_id, text), ""),
            }
            for run_id, text in shown
        ]

    def _soon(self, rank: int, do: Callable[[], None]) -> None:
        self._todo.put((rank, next(self._numbers), do))
        if self._worker is None:
            self._worker = threading.Thread(target=_work, args=(self._todo,), name="workbench-try", daemon=True)
            self._worker.start()


def _unprepared(subject: Run | Recipe, what: str) -> dict[str, Any]:
    """Return what a page asks its user where the text of a recipe is not prepared yet; else nothing."""
    if isinstance(subject, Run) or what == "prepare" or is_prepared(subject.data):
        return {}
    seconds = usual_seconds(subject.data)
    known = "" if seconds is None else f"; it took {duration_words(seconds)} here the last time"
    return {"unprepared": f"the text of this recipe is not prepared yet: read, split and turned into tokens{known}"}


def served(run: Run) -> str:
    """Return the name of a run at the server, ``<place>/<run id>``; empty where it is not served."""
    place = place_of(run.folder.path.parent)
    return f"{place}/{run.id}" if place else ""


def spread(steps: Sequence[int], most: int) -> list[int]:
    """Return about so many steps at most, the newest among them; the others stay the same while more come.

    Example:
        >>> spread([10, 20, 30, 40, 50, 60], 4)
        [10, 30, 50, 60]
    """
    stride = 1
    while len(steps) > stride * most:
        stride *= 2
    return sorted({*steps[::stride], *steps[-1:]})


def _answer(run: Run, text: str, step: int | None, message: Mapping[str, Any]) -> dict[str, Any]:
    try:
        if MASK in text:
            filled = fill(run, text, step=step)
            return {"step": filled.step, "words": filled.words}
        found = generate(run, text, step=step, **{name: message[name] for name in _KNOBS})
        return {"step": found.step, "text": found.text, "steps": found.steps}
    except Exception as error:  # the page is where the user looks
        return {"error": str(error) or type(error).__name__}


def _best(run: Run, text: str, step: int) -> tuple[str, float | None]:
    """Return the likeliest word at the [MASK] with its probability, or the likeliest continuation."""
    if MASK in text:
        return fill(run, text, step=step, top=1).words[0]
    return generate(run, text, PINNED_TOKENS, temperature=0, step=step).text, None


def _work(todo: queue.PriorityQueue[tuple[int, int, Callable[[], None] | None]]) -> None:
    while (do := todo.get()[2]) is not None:
        do()
