"""Steer a run from a page: one form of request and of answer, whoever carries them.

A page asks a kernel (:mod:`workbench.jupyter.steering`) or the server extension (:mod:`workbench.jupyter.server`). A
request is an object with a ``verb``; an answer has ``state`` (``sent``, ``asked``, ``accepted``, ``done``, ``refused``,
``late``, or ``failed`` where another carrier may succeed) and ``text`` for people. A refused one has ``reason``,
``leased`` where somebody else steers the run; ``asked`` has the id of the ``request``; a fork has ``made``. A page
names itself by a random id (``controller``) and holds the lease of a run (:mod:`workbench.store.lease`) for as long as
somebody works in its panel. No torch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from workbench.base.errors import RunError, WorkbenchError, unknown
from workbench.client.fork_point import steps_of
from workbench.client.knob_checks import check_spelling
from workbench.client.run import Run
from workbench.store import control, requests
from workbench.store.folder import RunFolder
from workbench.store.lease import SteeredByOther, claim, lease_holder, read_lease, release
from workbench.store.state import FINAL

CONTROLLER_CHARACTERS = 80
MOST_EDITS, EDIT_CHARACTERS = 64, 4000
"""Lines of a fork's edits, and characters in one of them."""
STARTS = ("restart", "fork")
"""Verbs that start a process; their carrier does it."""
_OWN, _FORK = {"controller", "hold", "take_over"}, {"step", "edits"}
# Keys of a request beside its verb.
_KEYS: dict[str, set[str]] = {
    **dict.fromkeys(control.VERBS, _OWN),
    **dict.fromkeys(("set", "check"), _OWN | {"path", "value"}),
    "lease": {"controller", "take_over"},
    "release": {"controller"},
    "restart": set(),
    "fork": _FORK,
    "try_fork": _FORK,
}
Answer = dict[str, Any]


def steering(folder: RunFolder) -> dict[str, Any]:
    """Return what a page needs to steer a run.

    Returns:
        ``knobs``: what may be set, each with its path, value, help, unit and bounds
        (``workbench.recipes.changes.settable``); ``checkpoints``: the steps one may fork from, ascending; ``lease``:
        who steers (:func:`workbench.store.lease.lease_holder`), or None.
    """
    return {
        "knobs": control.read_knobs(folder),
        "checkpoints": steps_of(folder)[::-1],
        "lease": lease_holder(read_lease(folder)),
    }


def request_of(value: Any) -> dict[str, Any]:
    """Read a request of a page: a mapping, or one as JSON.

    ``verb`` is one that a run answers (:data:`workbench.store.control.VERBS`; ``hold`` claims the lease with it,
    ``take_over`` also from somebody else), ``lease`` (claim, renew, take over), ``release``, ``restart`` (go on after
    an end), ``fork`` or ``try_fork`` (tell what a fork would change), both with the ``step`` of a checkpoint (absent
    for the newest) and ``edits``, texts as ``optimizer.lr=1e-3``.

    Raises:
        RunError: it is none; the message says what a page may ask.
    """
    fields = _object(value)
    verb = fields.get("verb")
    if not isinstance(verb, str) or verb not in _KEYS:
        raise RunError(unknown("verb", str(verb)[:40], _KEYS))
    legal = _KEYS[verb] | {"verb"}
    if surplus := sorted(fields.keys() - legal):
        raise RunError(unknown(f"a key of '{verb}'", surplus[0][:40], legal))
    controller = fields.get("controller", "")
    if not isinstance(controller, str) or len(controller) > CONTROLLER_CHARACTERS:
        raise RunError(f"controller must be a text of at most {CONTROLLER_CHARACTERS} characters")
    for key in ("hold", "take_over"):
        if not isinstance(fields.get(key, False), bool):
            raise RunError(f"{key} must be true or false")
    if not controller and (verb in ("lease", "release") or fields.get("hold")):
        raise RunError("whoever holds the run must name itself: add its controller")
    _check_fork(fields.get("step"), fields.get("edits", []))
    return fields


def steer(run: Run, request: Mapping[str, Any], name: str = "") -> Answer:
    """Pass a page's request on to its run, or change the run's lease; returns the first answer.

    Args:
        request: of :func:`request_of`, whose verb starts no process.
        name: of whoever asks, for people; else user and machine.
    """
    arguments = dict(request)
    verb, controller, take_over = arguments["verb"], arguments.get("controller", ""), bool(arguments.get("take_over"))
    try:
        if verb == "release":
            release(run.folder, controller)
            return done()
        # After the look at the status: nobody is to hold a run that will not answer.
        if verb == "lease" or (arguments.pop("hold", False) and run.status not in FINAL):
            claim(run.folder, controller, name, take_over=take_over)
        return done() if verb == "lease" else {"state": "asked", "text": "", "request": run.ask(**arguments)}
    except WorkbenchError as error:
        return refused(error)


def fork_of(folder: RunFolder, request: Mapping[str, Any]) -> tuple[int | None, list[str]]:
    """Return step (None for the newest checkpoint) and ``PATH=VALUE`` edits of a request for a fork.

    Raises:
        RecipeError: the run has no knob of that name, but one that is spelt nearly so.
    """
    step, edits = request.get("step"), request.get("edits", [])
    check_spelling(folder, edits)
    return step, edits


def forked(folder: RunFolder) -> Answer:
    """Return the answer to a fork that was just launched; one that waits for its turn goes on from nothing yet."""
    fork = Run(folder)
    origin = fork.origin
    step, fresh = (origin.step, list(origin.fresh)) if origin else (None, [])
    text = f"{fork.name} {'waits for its turn, then ' * (fork.status == 'queued')}goes on from step {step}"
    return done(text) | {"made": {"run": fork.id, "name": fork.name, "step": step, "fresh": fresh}}


def done(text: str = "") -> Answer:
    """Return the answer to what was done at once."""
    return {"state": "done", "text": text}


def refused(error: Exception) -> Answer:
    """Return the answer to a request that failed."""
    if isinstance(error, SteeredByOther):
        return {"state": "refused", "text": error.plain, "reason": "leased"}
    return {"state": "refused", "text": str(error) or type(error).__name__}


def told(found: requests.Answer) -> Answer:
    """Return what the run has said as an answer; ``under_way``: it is being carried out, and worth waiting for."""
    state = "refused" if found.state == "ended" else found.state
    return {"state": state, "text": found.text, "under_way": found.under_way}


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, bytes):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise RunError('the request must be a JSON object, for example {"verb": "stop"}')
    return dict(value)


def _check_fork(step: Any, edits: Any) -> None:
    if step is not None and (isinstance(step, bool) or not isinstance(step, int) or step < 0):
        raise RunError("step must be that of a checkpoint, or left out for the newest")
    if not isinstance(edits, list) or len(edits) > MOST_EDITS:
        raise RunError(f"edits must be a list of at most {MOST_EDITS} texts, for example 'optimizer.lr=1e-3'")
    for edit in edits:
        if not isinstance(edit, str) or len(edit) > EDIT_CHARACTERS or "\0" in edit or "=" not in edit:
            raise RunError(f"{str(edit)[:40]!r} is not PATH=VALUE, for example optimizer.lr=1e-3")
