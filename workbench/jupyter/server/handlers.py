"""The extension's handlers, under ``<base url>workbench/api``. A run is named ``<place>/<run id>``.

=====================================  =================================================================
``GET  /runs?most=..``                 all runs, those under way first (:mod:`workbench.jupyter.server.all_runs`)
``GET  /telemetry?run=..&since=..``    what is new of one or several (see :class:`TelemetryHandler`)
``POST /runs/<place>/<id>/steer``      a request and its first answer (:mod:`workbench.client.steering`)
``GET  /runs/<place>/<id>/steer/<request>``  the present answer
``GET  /runs/<place>/<id>/rows?step=..``  rows of a step; ``find?text=..``, ``facts`` (:class:`RowsHandler`)
=====================================  =================================================================

What a run refuses is an answer. Errors are JSON too: ``{"message"}``.
"""

from __future__ import annotations

from typing import Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.utils import url_path_join
from tornado import web

from workbench.jupyter.server.all_runs import MOST, AllRuns
from workbench.jupyter.server.base import WorkbenchHandler
from workbench.jupyter.server.follower import Follower
from workbench.jupyter.server.registered_runs import HERE, Places, Refused
from workbench.jupyter.server.rows import RowsHandler
from workbench.jupyter.server.steering import AnswerHandler, SteerHandler

# A page has eight colours; more curves than twice that are for pictures.
_MOST_RUNS, _MOST_EXTRA = 16, 64


class TelemetryHandler(WorkbenchHandler):
    """News of runs: the messages that kernels send (:mod:`workbench.jupyter.feed.wire`), sealed, one per question.

    Query: ``run`` (``<place>/<id>``, repeated, in the page's order), ``since`` (``cursor`` of the last message;
    leave it out for everything), ``extra`` (a scalar's name, repeated).
    """

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer with a snapshot, a delta, or a beat where there is no news."""
        runs = self.get_query_arguments("run", strip=False)
        if not 1 <= len(runs) <= _MOST_RUNS or len(set(runs)) != len(runs):
            raise Refused(400, f"name 1 to {_MOST_RUNS} different runs: ?run=<place>/<id>&run=...; found {len(runs)}")
        extra = frozenset(self.get_query_arguments("extra", strip=False))
        if len(extra) > _MOST_EXTRA:
            raise Refused(400, f"{len(extra)} scalars were asked for; at most {_MOST_EXTRA} are sent")
        message = await self.reading(self._message, runs, self.get_query_argument("since", ""), extra)
        self.follower.sweep_later()
        self.set_header("Cache-Control", "no-store")
        self.finish(message, set_content_type="application/octet-stream")

    def _message(self, runs: list[str], since: str, extra: frozenset[str]) -> bytes:
        folders = []
        for name in runs:
            place, slash, run = name.partition("/")
            if not slash:
                raise Refused(400, f"run={name[:64]!r} must be <place>/<run id>, for example {HERE}/{name[:64]}")
            folders.append(self.places.folder(place, run))
        if len({folder.path for folder in folders}) != len(folders):
            raise Refused(400, "two of these names stand for one run, by two names of its place; name it once")
        return self.follower.message(folders, since, extra)


class RunsHandler(WorkbenchHandler):
    """All runs."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """See :meth:`workbench.jupyter.server.all_runs.AllRuns.look`."""
        self.reply(await self.reading(self.all_runs.look, self.count("most", MOST, MOST)))


def routes(base_url: str, places: Places) -> list[tuple[str, type, dict[str, Any]]]:
    """Return the handlers and where they stand.

    Args:
        base_url: of the server, ``/`` or a hub's prefix.
    """
    shared = {"places": places, "follower": Follower(), "all_runs": AllRuns(places)}
    part = "([^/]+)"
    table = {
        "/runs": RunsHandler,
        "/telemetry": TelemetryHandler,
        f"/runs/{part}/{part}/(rows|find|facts)": RowsHandler,
        f"/runs/{part}/{part}/steer": SteerHandler,
        f"/runs/{part}/{part}/steer/{part}": AnswerHandler,
    }
    return [(url_path_join(base_url, "workbench", "api") + path, handler, shared) for path, handler in table.items()]
