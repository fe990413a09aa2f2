"""What a page asks of its runs through the kernel: where there is no server extension, or it cannot help.

A message of the page carries a ``token``; every answer brings it back, so that a page knows its own among those of
other pages. Anything that takes time happens in a thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workbench.assignments import assignment
from workbench.errors import RunError
from workbench.runs import requests
from workbench.runs.forks.fork import fork
from workbench.runs.forks.point import ForkPoint
from workbench.runs.run import Run
from workbench.runs.state import FINAL
from workbench.runs.steering import ask, fork_of, hold, lease_of, request_of, why_refused

ANSWER_SECONDS = 60.0
"""How long a run's answer is waited for; a step of a large model takes some."""
_ENVELOPE = ("type", "token", "run")
Answer = dict[str, Any]


class Steering:
    """Passes on what pages ask.

    Args:
        runs: those that the pages show; a page may name no other.
        tell: takes an answer to the pages.
        stirred: called when a run has news again (it was resumed).
    """

    def __init__(self, runs: Sequence[Run], tell: Callable[[Answer], None], stirred: Callable[[], None]) -> None:
        self._runs, self._tell, self._stirred = runs, tell, stirred

    def receive(self, message: Mapping[str, Any]) -> None:
        """A message of a page: ``control``, ``lease``, ``fork`` or ``try_fork``; returns at once."""
        place = next((i for i, run in enumerate(self._runs) if run.id == message.get("run")), None)
        work = {"control": self._control, "lease": self._lease, "fork": self._fork, "try_fork": self._try_fork}
        does = work.get(str(message.get("type")))
        # A page may name its own runs only.
        if place is None or does is None:
            return
        token = message.get("token")
        answer: Answer = {"type": "notice", "run": place, "token": token if isinstance(token, str) else ""}
        request = {key: value for key, value in message.items() if key not in _ENVELOPE}
        name = f"workbench-{message['type']}"
        threading.Thread(target=self._safely, args=(does, place, request, answer), name=name, daemon=True).start()

    def _safely(self, does: Callable[..., None], place: int, request: dict[str, Any], answer: Answer) -> None:
        run = self._runs[place]
        try:
            does(run, request, answer)
        except Exception as error:  # the widget is where the user who pressed the button looks
            controller = request.get("controller")
            reason = why_refused(run, controller if isinstance(controller, str) else "")
            self._say(answer, "refused", str(error), reason=reason if isinstance(error, RunError) else "")

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
        # Not `run.fork`: a knob may be called as one of its arguments.
        forked = Run(fork(run.folder, dict(map(assignment, edits)), step))
        origin = forked.origin
        at, fresh = (origin.step, list(origin.fresh)) if origin else (step, [])
        new = {"run": forked.id, "name": forked.name, "step": at, "fresh": fresh}
        self._say(answer, "done", f"{forked.name} goes on from step {at}", made=new)

    def _try_fork(self, run: Run, fields: dict[str, Any], answer: Answer) -> None:
        step, edits = fork_of(fields)
        diff = ForkPoint.of(run.folder, step).diff(dict(map(assignment, edits)))
        changes = [f"{path} {before} → {after}" for path, (before, after) in diff.items() if path != "name"]
        self._say(answer, "done", ", ".join(changes) or "nothing changes: the fork repeats this run")
