"""Base of all handlers: a name for authorizers, errors that teach, work off the server's loop."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from jupyter_server.base.handlers import APIHandler
from tornado import web

from workbench.base.json_lines import finite
from workbench.jupyter.server.all_runs import AllRuns
from workbench.jupyter.server.follower import Follower
from workbench.jupyter.server.registered_runs import Places, Refused

P = ParamSpec("P")
T = TypeVar("T")
BODY_BYTES = 1 << 16
"""A request to a run is a verb, a path and a value; the trainer reads no more than this either."""
# Files are read here: a slow disk must not hold up the server's other pages. Threads start with the first request.
_reading = ThreadPoolExecutor(max_workers=2, thread_name_prefix="workbench")


class WorkbenchHandler(APIHandler):
    """Base of all of ours."""

    auth_resource = "workbench"
    # An open page polls without end; a hub must still find the server idle.
    _track_activity = False

    def initialize(self, places: Places, follower: Follower, all_runs: AllRuns) -> None:
        """Tornado's constructor: what the server shows, and what it has read of it."""
        self.places, self.follower, self.all_runs = places, follower, all_runs

    async def reading(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run something that reads files in a thread.

        Raises:
            Refused: the disk, or what a run left on it, cannot be read.
        """
        call = functools.partial(work, *args, **kwargs)
        try:
            return await asyncio.get_running_loop().run_in_executor(_reading, call)
        except OSError as error:
            raise Refused(500, f"reading failed: {error}") from error

    def reply(self, value: dict[str, Any]) -> None:
        """Answer with JSON; numbers that it has no word for become null."""
        self.set_header("Cache-Control", "no-store")
        self.finish(json.dumps(finite(value), allow_nan=False))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """As other handlers of the server do, with the text of a refusal."""
        error = (kwargs.get("exc_info") or (None, None))[1]
        if not isinstance(error, Refused):
            super().write_error(status_code, **kwargs)
            return
        self.finish(json.dumps({"message": error.text}))

    def compute_etag(self) -> None:
        """None: every answer is of its moment."""

    def count(self, name: str, default: int, most: int) -> int:
        """Return a whole number of the query.

        Raises:
            Refused: it is none, or out of bounds.
        """
        text = self.get_query_argument(name, str(default))
        # `isdecimal` and a length: int() would also take signs, underscores and a million digits.
        if not (text.isdecimal() and text.isascii() and len(text) <= 16 and int(text) <= most):
            raise Refused(400, f"{name}={text[:40]!r} must be a whole number from 0 to {most}")
        return int(text)


# Streamed, so that `prepare` (who asks, how much) comes before any of the body is taken in.
@web.stream_request_body
class AskingHandler(WorkbenchHandler):
    """Base of those that take a small JSON body, in :attr:`body`."""

    _track_activity = True

    async def prepare(self) -> None:  # type: ignore[override]
        """Refuses strangers, pages of other sites, and bodies that no request needs."""
        self.body = b""
        await super().prepare()
        announced = self.request.headers.get("Content-Length", "")
        if not announced.isdecimal():
            raise Refused(411, "the request must say its length (a Content-Length header)")
        # The server itself holds whoever asks to the length announced; of a refused body it keeps nothing.
        if int(announced) > BODY_BYTES:
            raise Refused(413, f"the request has {announced} bytes; at most {BODY_BYTES} are read")

    def data_received(self, chunk: bytes) -> None:
        """Tornado's hook: a part of the body."""
        self.body += chunk
