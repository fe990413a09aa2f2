"""Waiting for what becomes of a request: one look for pages that poll, one wait for everybody else.

A request (:mod:`workbench.store.control`) is ``sent``, then perhaps ``accepted`` (it takes longer than a step), and in
the end ``done`` or ``refused``; or ``ended``, when the run is over and nobody will answer any more. Patience is for the
run to take a request up: what it has begun is waited for until it is done, since an evaluation may take seconds or an
hour and is not refused meanwhile. Whoever stops waiting earlier takes nothing back: the request stands. Standard
library only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from workbench.store import control
from workbench.store.folder import RunFolder
from workbench.store.state import FINAL, STALLED, actual_status

LOOK_SECONDS = 0.05
"""Between two looks. Polled, as all in the folder is: file events do not reach across network file systems."""


@dataclass(frozen=True)
class Answer:
    """The answer to a request so far.

    Attributes:
        state: how far it has come.
        text: of the run, for people.
        status: of the run, as it was just before.
    """

    state: Literal["sent", "accepted", "done", "refused", "ended"]
    text: str = ""
    status: str = ""

    @property
    def settled(self) -> bool:
        """True if no other answer will come."""
        return self.state in ("done", "refused", "ended")

    @property
    def under_way(self) -> bool:
        """True while the run is carrying it out; one that has stalled over it is not."""
        return self.state == "accepted" and self.status != STALLED


def look(folder: RunFolder, request_id: str) -> Answer:
    """Return the answer to a request so far.

    Raises:
        RunError: that is no request id.
    """
    # The status first: a run that has ended and whose answer is then missing has not given one.
    status = actual_status(folder)
    found = control.outcome(folder, request_id)
    done, text = (found or {}).get("done"), str((found or {}).get("text", ""))
    if isinstance(done, bool):
        return Answer("done" if done else "refused", text, status)
    if status in FINAL:
        if request_id.split("-")[1] == "stop":
            return Answer("done", "the run has ended", status)
        return Answer("ended", "the run ended before it answered", status)
    return Answer("sent" if found is None else "accepted", text, status)


def follow(folder: RunFolder, request_id: str, seconds: float) -> Iterator[Answer]:
    """Yield every state of a request, from the present one until it is settled or patience is at an end.

    Args:
        seconds: for the run to take it up; not counted while the run is carrying it out.

    Raises:
        RunError: that is no request id.
    """
    until, state = time.monotonic() + seconds, ""
    while True:
        answer = look(folder, request_id)
        if answer.state != state:
            state = answer.state
            yield answer
        if answer.settled or (time.monotonic() >= until and not answer.under_way):
            return
        time.sleep(LOOK_SECONDS)


def wait(folder: RunFolder, request_id: str, seconds: float, said: Callable[[str], None] | None = None) -> Answer:
    """Wait for the answer to a request; one that is not settled means that nobody took it up (see :func:`follow`).

    Args:
        said: gets what the run says when it has begun.
    """
    for answer in follow(folder, request_id, seconds):
        if said is not None and answer.under_way:
            said(answer.text)
    return answer
