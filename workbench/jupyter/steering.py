"""Carry requests of a page to its runs through the kernel: where there is no server extension, or it cannot help.

A message ``{"type": "steer", "id", "run", "verb", ...}`` (:mod:`workbench.client.steering`) gets answers ``{"type":
"answer", "id", "state", "text", ...}``; by the id a page knows its own among those of other pages.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jupyter_core.paths import jupyter_runtime_dir

from workbench.base.assignments import assignment
from workbench.client.fork import fork
from workbench.client.fork_point import ForkPoint
from workbench.client.run import Run
from workbench.client.steering import Answer, done, fork_of, forked, refused, request_of, steer, told
from workbench.jupyter.feed.registered_roots import NOTES, register
from workbench.store import requests

ANSWER_SECONDS = 60.0
"""Time that a run may take to begin; a step of a large model takes some."""
_ENVELOPE = ("type", "id", "run")


def place_of(root: Path) -> str:
    """Return the key of a runs folder at the server extension; empty where no server can know of it."""
    try:
        return register(Path(jupyter_runtime_dir(), NOTES), root)
    # No place for notes (a read-only home): then this kernel serves its pages alone.
    except OSError:
        return ""


class Steering:
    """Passes on what pages ask.

    Args:
        find: gives the run of an id that a page has sent; None where it may not name it.
        tell: takes an answer to the pages.
        stirred: called when a run has news again (it was resumed).
    """

    def __init__(
        self, find: Callable[[str], Run | None], tell: Callable[[Answer], None], stirred: Callable[[], None]
    ) -> None:
        self._find, self._tell, self._stirred = find, tell, stirred

    def receive(self, message: Mapping[str, Any]) -> None:
        """Take a message of a page; a thread answers it, since that may take long."""
        run = self._find(str(message.get("run"))) if message.get("type") == "steer" else None
        if run is not None:
            request = {key: value for key, value in message.items() if key not in _ENVELOPE}
            arguments = (run, request, message.get("id"))
            threading.Thread(target=self._answer, args=arguments, name="workbench-steer", daemon=True).start()

    def _answer(self, run: Run, value: Mapping[str, Any], asked: Any) -> None:
        try:
            for answer in self._answers(run, request_of(value)):
                self._tell({"type": "answer", "id": asked, **answer})
        except Exception as error:  # the widget is where the user who pressed the button looks
            self._tell({"type": "answer", "id": asked, **refused(error)})

    def _answers(self, run: Run, request: dict[str, Any]) -> Iterator[Answer]:
        if request["verb"] == "restart":
            yield done(run.resume())
            self._stirred()
        elif request["verb"] == "fork":
            step, edits = fork_of(run.folder, request)
            # Not `run.fork`: a knob may be called as one of its arguments.
            yield forked(fork(run.folder, dict(map(assignment, edits)), step))
        elif request["verb"] == "try_fork":
            yield done(_foretold(run, *fork_of(run.folder, request)))
        else:
            first = steer(run, request)
            yield first
            if first["state"] == "asked":
                yield from _followed(run, first["request"])


def _followed(run: Run, request: str) -> Iterator[Answer]:
    for found in requests.follow(run.folder, request, ANSWER_SECONDS):
        if found.state != "sent":
            yield told(found)
    if not found.settled:
        yield {"state": "late", "text": "no answer yet; the request stands"}


def _foretold(run: Run, step: int | None, edits: list[str]) -> str:
    """Return what a fork would change, and what it may spend."""
    point, edited = ForkPoint.of(run.folder, step), dict(map(assignment, edits))
    diff = point.diff(edited)
    changes = [f"{path} {before} → {after}" for path, (before, after) in diff.items() if path != "name"]
    text = ", ".join(changes) or "nothing changes: the fork repeats this run"
    if not changes and (later := point.turned_since()):
        change = "change" if len(later) == 1 else "changes"
        text += f" as it was at step {point.step:,}, without the later {change} of {', '.join(later)}"
    return f"{text}; {point.budget_text(point.recipe.with_(**edited))}"
