"""Requests of a page to its runs through the kernel, where there is no server extension or it cannot help.

A message of the page carries a ``token``; every answer brings it back, so that a page knows its own among those of
other pages. Anything that takes time happens in a thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jupyter_core.paths import jupyter_runtime_dir

from workbench.base.assignments import assignment
from workbench.base.errors import RunError
from workbench.client.fork import fork
from workbench.client.fork_point import ForkPoint
from workbench.client.knob_checks import check_spelling
from workbench.client.run import Run
from workbench.client.steering import ask, fork_of, forked_text, hold, lease_of, refusal, request_of
from workbench.jupyter.feed.registered_roots import NOTES, register
from workbench.store import requests
from workbench.store.state import FINAL

ANSWER_SECONDS = 60.0
"""Time that a run may take to begin; a step of a large model takes some."""
_ENVELOPE = ("type", "token", "run")
Answer = dict[str, Any]


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
        """Take a message of a page: ``control``, ``lease``, ``fork`` or ``try_fork``; returns at once."""
        work = {"control": self._control, "lease": self._lease, "fork": self._fork, "try_fork": self._try_fork}
        does = work.get(str(message.get("type")))
        run = None if does is None else self._find(str(message.get("run")))
        if does is None or run is None:
            return
        token = message.get("token")
        answer: Answer = {"type": "notice", "run": run.id, "token": token if isinstance(token, str) else ""}
        request = {key: value for key, value in message.items() if key not in _ENVELOPE}
        name = f"workbench-{message['type']}"
        threading.Thread(target=self._safely, args=(does, run, request, answer), name=name, daemon=True).start()

    def _safely(self, does: Callable[..., None], run: Run, request: dict[str, Any], answer: Answer) -> None:
        try:
            does(run, request, answer)
        except Exception as error:  # the widget is where the user who pressed the button looks
            text, reason = refusal(run, error) if isinstance(error, RunError) else (str(error), "")
            self._say(answer, "refused", text, reason=reason)

    def _say(self, answer: Answer, state: str, text: str, **more: Any) -> None:
        self._tell(answer | {"state": state, "text": text, "error": state == "refused"} | more)

    def _control(self, run: Run, fields: dict[str, Any], answer: Answer) -> None:
        request = request_of(fields)
        if request["verb"] == "resume" and run.status in FINAL:
            self._say(answer, "done", run.resume())
            self._stirred()
            return
        for found in requests.follow(run.folder, ask(run, request), ANSWER_SECONDS):
            if found.state == "ended":
                raise RunError(f"{request['verb']}: {found.text}")
            self._say(answer, "asked" if found.state == "sent" else found.state, found.text, time=found.time)
        if not found.settled:
            self._say(answer, "late", "no answer yet; the request stands")

    def _lease(self, run: Run, fields: dict[str, Any], answer: Answer) -> None:
        self._say(answer, "done", "", lease=hold(run.folder, lease_of(fields)))

    def _fork(self, run: Run, fields: dict[str, Any], answer: Answer) -> None:
        step, edits = fork_of(fields)
        check_spelling(run.folder, edits)
        # Not `run.fork`: a knob may be called as one of its arguments.
        forked = Run(fork(run.folder, dict(map(assignment, edits)), step))
        origin = forked.origin
        at, fresh = (origin.step, list(origin.fresh)) if origin else (step, [])
        new = {"run": forked.id, "name": forked.name, "step": at, "fresh": fresh}
        self._say(answer, "done", forked_text(forked.folder), made=new)

    def _try_fork(self, run: Run, fields: dict[str, Any], answer: Answer) -> None:
        step, edits = fork_of(fields)
        check_spelling(run.folder, edits)
        point, edited = ForkPoint.of(run.folder, step), dict(map(assignment, edits))
        diff = point.diff(edited)
        changes = [f"{path} {before} → {after}" for path, (before, after) in diff.items() if path != "name"]
        told = ", ".join(changes) or "nothing changes: the fork repeats this run"
        self._say(answer, "done", f"{told}; {point.budget_text(point.recipe.with_(**edited))}")
