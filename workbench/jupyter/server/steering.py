"""Handlers that reach a run: requests and what became of them, the lease, and what starts a process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from jupyter_server.auth.decorator import authorized
from tornado import web

from workbench.base.errors import RecipeError, RunError
from workbench.client.knob_checks import check_spelling
from workbench.client.run import Run
from workbench.client.steering import ask, fork_of, forked_text, hold, lease_of, refusal, request_of
from workbench.jupyter.server.base import AskingHandler, WorkbenchHandler
from workbench.jupyter.server.registered_runs import Refused
from workbench.jupyter.server.starting import workbench
from workbench.store import requests
from workbench.store.folder import RunFolder
from workbench.store.labels import name_of
from workbench.store.lease import whoami

T = TypeVar("T")
# Long enough for an answer of the next step of most runs, short enough that a page that has gone holds nothing.
_MOST_WAIT_SECONDS = 10


class ControlHandler(AskingHandler):
    """Requests to a run."""

    @web.authenticated
    @authorized
    async def post(self, place: str, run: str) -> None:
        """202 ``{"request"}``: the run was asked. Body: :func:`workbench.client.steering.request_of`.

        400: the request makes no sense; 409: the run has ended (reason ``ended``) or somebody else steers it
        (``leased``).
        """
        request = _legal(request_of, self.body)
        self.reply({"request": await self.reading(self._ask, place, run, request, _name(self))}, 202)

    def _ask(self, place: str, run: str, request: dict[str, Any], name: str) -> str:
        live = Run(self.places.folder(place, run))
        try:
            return ask(live, request, name)
        except RunError as error:
            raise _refused(live, error) from None


class OutcomeHandler(WorkbenchHandler):
    """Outcomes of requests."""

    @web.authenticated
    @authorized
    async def get(self, place: str, run: str, request: str) -> None:
        """``{"request", "answered", "done", "text", "time", "status"}``; a run that ended (``status``) will not answer.

        ``answered`` with ``done`` null: it is being carried out. ``?wait=`` seconds for something that was not
        ``?said=`` yet (``accepted`` or nothing) saves a page from asking again and again.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self.count("wait", 0, _MOST_WAIT_SECONDS)
        known = self.get_query_argument("said", "")
        while True:
            answer = await self.reading(self._look, place, run, request)
            if answer.settled or answer.state not in ("sent", known) or loop.time() >= until:
                break
            await asyncio.sleep(requests.LOOK_SECONDS)
        given = answer.state in ("accepted", "done", "refused")
        self.reply(
            {
                "request": request,
                "answered": given,
                "done": answer.state == "done" if given and answer.settled else None,
                "text": answer.text if given else "",
                "time": answer.time,
                "status": answer.status,
            }
        )

    def _look(self, place: str, run: str, request: str) -> requests.Answer:
        folder = self.places.folder(place, run)
        try:
            return requests.look(folder, request)
        except RunError as error:
            raise Refused(400, f"{str(error)[:200]}; ids come from POST .../control") from None


class LeaseHandler(AskingHandler):
    """The lease of a run."""

    @web.authenticated
    @authorized
    async def post(self, place: str, run: str) -> None:
        """``{"lease"}``: who holds it now. Body: :func:`workbench.client.steering.lease_of`; 409 ``leased``."""
        request = _legal(lease_of, self.body)
        self.reply({"lease": await self.reading(self._hold, place, run, request, _name(self))})

    def _hold(self, place: str, run: str, request: dict[str, Any], name: str) -> dict[str, Any] | None:
        folder = self.places.folder(place, run)
        try:
            return hold(folder, request, name)
        except RunError as error:
            raise _refused(Run(folder), error) from None


class ResumeHandler(AskingHandler):
    """Going on after an end."""

    # `execute`, as for kernels: an authorizer may let people look and pause, and start no processes.
    @web.authenticated
    @authorized("execute")
    async def post(self, place: str, run: str) -> None:
        """``{"text"}``: a run that ended goes on from its last checkpoint, one that was paused at once."""
        folder = await self.reading(self.places.folder, place, run)
        answer = await workbench(folder, "resume", f"--timeout={_MOST_WAIT_SECONDS}")
        self.reply({"text": str(answer.get("text", ""))})


class ForkHandler(AskingHandler):
    """A new run from a checkpoint."""

    @web.authenticated
    @authorized("execute")
    async def post(self, place: str, run: str) -> None:
        """201 ``{"run", "place", "name", "step", "fresh", "text"}``. Body: `workbench.client.steering.fork_of`."""
        step, edits = _legal(fork_of, self.body)
        folder = await self.reading(self._checked, place, run, edits)
        # One argument each, so that no text of a page can be an option of its own.
        arguments = [f"--set={edit}" for edit in edits] + ([f"--checkpoint={step}"] if step is not None else [])
        answer = await workbench(folder, "fork", *arguments)
        new = await self.reading(self.places.folder, place, str(answer.get("run")))
        parent = answer.get("parent") or {}
        found = {"run": new.id, "place": place, "name": name_of(new), "step": parent.get("step")}
        text = await self.reading(forked_text, new)
        self.reply(found | {"fresh": answer.get("fresh", []), "text": text}, 201)

    def _checked(self, place: str, run: str, edits: list[str]) -> RunFolder:
        """Return the run's folder, once a look at its recipe has found nothing wrong with the edits."""
        folder = self.places.folder(place, run)
        try:
            check_spelling(folder, edits)
        except RecipeError as error:
            raise Refused(400, str(error)) from None
        return folder


def _legal(read: Callable[[Any], T], body: bytes) -> T:
    try:
        return read(body)
    except RunError as error:
        raise Refused(400, str(error)) from None


def _refused(run: Run, error: RunError) -> Refused:
    text, why = refusal(run, error)
    return Refused(409 if why else 400, text, why or None)


def _name(handler: WorkbenchHandler) -> str:
    """Return what others are told of who steers: the name that the server knows them by, else user and machine."""
    name = str(getattr(handler.current_user, "display_name", "") or "")
    # A name that a server without names has made up tells nobody anything.
    return whoami() if not name or name.startswith("Anonymous ") else f"{name} ({whoami()})"
