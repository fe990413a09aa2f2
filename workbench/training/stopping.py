"""Tell a trainer to end: at once while it starts, which may take minutes; later, after the present step."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from typing import Any, Protocol

from workbench.store import control
from workbench.store.folder import RunFolder
from workbench.store.state import LEFT_TO_SUPERVISOR
from workbench.training.status import Status

LOOK_SECONDS = 0.3
"""Between two looks for a request while a run starts."""
ON_REQUEST = "stopped on request"


class StoppedEarly(BaseException):
    """The run is to end, and has not trained yet; no Exception, so that nothing on the way takes it for a failure."""


class Stoppable(Protocol):
    """A training that can be told to end after its present step."""

    def stop(self, why: str) -> None:
        """End, and say why."""


class Stopping:
    """Obeys SIGTERM and SIGINT, and while the run starts also the requests that nobody else reads yet.

    Begins in the main thread, where :class:`StoppedEarly` is raised.

    Attributes:
        session: what trains; None as long as there is nothing of the kind.
        early: why the run ended while it started; empty where it did not.
    """

    session: Stoppable | None = None
    early = ""

    def __init__(self, folder: RunFolder, status: Status) -> None:
        self._folder, self._status = folder, status
        self._why = ""

    def begin(self) -> None:
        """From here on :class:`StoppedEarly` may be raised anywhere."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._told)
        threading.Thread(target=self._listen, args=(threading.get_ident(),), name="stopping", daemon=True).start()

    def _told(self, number: int, _: Any) -> None:
        # Sent to every process of a cluster's job; the supervisor knows if that is an end of the run.
        if not self._why and os.environ.get(LEFT_TO_SUPERVISOR):
            return
        why = self._why or f"stopped by {signal.Signals(number).name}"
        if self.session is not None and not self._status.starting:
            self.session.stop(why)
        # Once: a second signal must not disturb the last words.
        elif not self.early:
            self.early = why
            raise StoppedEarly(why)

    def _listen(self, main: int) -> None:
        while self._status.starting:
            # A folder that is gone, or a full disk, is for the main thread to stumble over.
            with contextlib.suppress(OSError):
                for request in control.pending(self._folder):
                    if request.verb == "stop" and not control.refusal(self._folder, request):
                        self._why = ON_REQUEST
                        control.answer(self._folder, request.id, True, "stopping before the first step")
                        # To this thread of all, so that a wait for another process ends, too.
                        signal.pthread_kill(main, signal.SIGTERM)
                        return
            time.sleep(LOOK_SECONDS)
