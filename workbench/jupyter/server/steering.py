"""Carry requests of a page to its runs through the server: requests, what became of them, what starts a process."""

from __future__ import annotations

import asyncio
from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from workbench.base.errors import RunError, WorkbenchError
from workbench.client.run import Run
from workbench.client.steering import STARTS, Answer, done, fork_of, forked, refused, request_of, steer, told
from workbench.jupyter.server.base import AskingHandler, WorkbenchHandler
from workbench.jupyter.server.registered_runs import Refused
from workbench.jupyter.server.starting import CannotStart, workbench
from workbench.store import requests
from workbench.store.folder import RunFolder
from workbench.store.lease import whoami

# Long enough for an answer of the next step of most runs, short enough that a page that has gone holds nothing.
_MOST_WAIT_SECONDS = 10


class SteerHandler(AskingHandler):
    """Requests to a run."""

    @web.authenticated
    @authorized
    async def post(self, place: str, run: str) -> None:
        """Give the first answer to a request, as :mod:`workbench.client.steering` has both."""
        folder = await self.reading(self.places.folder, place, run)
        try:
            request = request_of(self.body)
        except RunError as error:
            self.reply(refused(error))
            return
        if request["verb"] in STARTS:
            await self._start(folder, request)
        elif request["verb"] == "try_fork":
            self.reply({"state": "failed", "text": "a recipe is read by a kernel alone"})
        else:
            self.reply(await self.reading(steer, Run(folder), request, _name(self)))

    # `execute`, as for kernels: an authorizer may let people look and pause, and start no processes.
    @authorized("execute")
    async def _start(self, folder: RunFolder, request: dict[str, Any]) -> None:
        try:
            self.reply(await (self._forked if request["verb"] == "fork" else self._resumed)(folder, request))
        except WorkbenchError as error:
            self.reply(refused(error))
        # Neither a run of another machine nor a server without torch keeps a kernel from starting it.
        except CannotStart as error:
            self.reply({"state": "failed", "text": str(error)})

    async def _resumed(self, folder: RunFolder, request: dict[str, Any]) -> Answer:
        return done(str((await workbench(folder, "resume", f"--timeout={_MOST_WAIT_SECONDS}")).get("text", "")))

    async def _forked(self, folder: RunFolder, request: dict[str, Any]) -> Answer:
        step, edits = await self.reading(fork_of, folder, request)
        # One argument each, so that no text of a page can be an option of its own.
        arguments = [f"--set={edit}" for edit in edits] + ([f"--checkpoint={step}"] if step is not None else [])
        new = await workbench(folder, "fork", *arguments)
        return await self.reading(forked, RunFolder(folder.path.parent / new["run"]))


class AnswerHandler(WorkbenchHandler):
    """Answers of runs."""

    @web.authenticated
    @authorized
    async def get(self, place: str, run: str, request: str) -> None:
        """Give the present answer to a request.

        With ``?wait=`` seconds it waits for a state other than ``sent`` and ``?said=``: a page need not ask often.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self.count("wait", 0, _MOST_WAIT_SECONDS)
        known = self.get_query_argument("said", "")
        while True:
            found = await self.reading(self._look, place, run, request)
            if found.state not in ("sent", known) or loop.time() >= until:
                break
            await asyncio.sleep(requests.LOOK_SECONDS)
        self.reply(told(found))

    def _look(self, place: str, run: str, request: str) -> requests.Answer:
        folder = self.places.folder(place, run)
        try:
            return requests.look(folder, request)
        except RunError as error:
            raise Refused(400, f"{str(error)[:200]}; ids come from POST .../steer") from None


def _name(handler: WorkbenchHandler) -> str:
    """Return what others are told of who steers: the name that the server knows them by, else user and machine."""
    name = str(getattr(handler.current_user, "display_name", "") or "")
    # A name that a server without names has made up tells nobody anything.
    return whoami() if not name or name.startswith("Anonymous ") else f"{name} ({whoami()})"
