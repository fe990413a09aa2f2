"""Rows of runs for a page without a kernel: questions go to a process beside the server, which loads no torch."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from workbench.base.errors import RunError
from workbench.client.asking import ask
from workbench.client.run import Run
from workbench.jupyter.server.base import WorkbenchHandler
from workbench.jupyter.server.registered_runs import Refused
from workbench.store.folder import RunFolder

MOST_STEP, MOST_ROWS, MOST_TEXT = 10**9, 64, 500
# A thread of its own: the first question starts a process that loads torch, and curves must not wait for it.
_asking = ThreadPoolExecutor(max_workers=1, thread_name_prefix="workbench-rows")


class RowsHandler(WorkbenchHandler):
    """Rows of a step (query ``step``, ``first``, ``rows``), places of a text (``text``), facts about the text."""

    @web.authenticated
    @authorized
    async def get(self, place: str, run: str, what: str) -> None:
        """Answer with what :mod:`workbench.seen.answers` says; what cannot be said is ``{"error"}``."""
        folder = await self.reading(self.places.folder, place, run)
        self.reply(
            await asyncio.get_running_loop().run_in_executor(_asking, _asked, folder, what, self._arguments(what))
        )

    def _arguments(self, what: str) -> dict[str, Any]:
        if what == "rows":
            return {"step": self.count("step", 0, MOST_STEP), "first": self.count("first", 0, MOST_STEP),
                    "rows": self.count("rows", 4, MOST_ROWS)}  # fmt: skip
        if what == "facts":
            return {}
        text = self.get_query_argument("text", "")
        if len(text) > MOST_TEXT:
            raise Refused(400, f"text has {len(text)} characters; at most {MOST_TEXT} are looked for")
        return {"text": text}


def _asked(folder: RunFolder, what: str, arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        return ask(Run(folder), what, **arguments)
    except RunError as error:
        return {"error": str(error)}
