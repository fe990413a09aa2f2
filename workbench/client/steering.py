"""Steering a run from a page: what a page is shown, what it may ask, and how that reaches the run.

The kernel and the server extension both pass on what a page asks; what is legal, and who is let through, is decided
here for both. A page names itself by a random id (``controller``) and holds the lease of a run
(:mod:`workbench.store.lease`) for as long as somebody works in its panel. No torch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from workbench.base.errors import RunError, unknown
from workbench.client.fork_point import steps_of
from workbench.client.run import Run
from workbench.store import control
from workbench.store.folder import RunFolder
from workbench.store.lease import SteeredByOther, claim, lease_holder, read_lease, release
from workbench.store.state import FINAL

CONTROLLER_CHARACTERS = 80
MOST_EDITS, EDIT_CHARACTERS = 64, 4000
"""Lines of a fork's edits, and characters in one of them."""
_EXAMPLE = 'the request must be a JSON object, for example {"verb": "stop"}'


def forked_text(folder: RunFolder) -> str:
    """Return words for a fork that was just launched: one that waits for its turn goes on from nothing yet."""
    fork = Run(folder)
    origin = fork.origin
    does = "goes on" if origin is None else f"goes on from step {origin.step}"
    return f"{fork.name} {'waits for its turn, then ' * (fork.status == 'queued')}{does}"


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
    """Read a request of a page to a run: ``verb``, for ``set`` and ``check`` also ``path`` and ``value``.

    ``controller`` is the page's id; ``hold`` claims the lease for it; ``take_over`` also from somebody else.

    Raises:
        RunError: it is none; the message says what a page may ask.
    """
    fields = _object(value)
    verb = fields.get("verb")
    if verb not in control.VERBS:
        raise RunError(unknown("verb", str(verb)[:40], control.VERBS))
    rest = {"path", "value"} if verb in ("set", "check") else set()
    _only(fields, {"verb", "controller", "hold", "take_over"} | rest, f"a key of '{verb}'")
    if fields.get("hold") and not fields.get("controller"):
        raise RunError("whoever holds the run must name itself: add its controller")
    return fields


def lease_of(value: Any) -> dict[str, Any]:
    """Return what a page wants with a run's lease: ``controller``, and ``take_over`` or ``release`` where it says so.

    Raises:
        RunError: that is no such request.
    """
    fields = _object(value)
    _only(fields, {"controller", "take_over", "release"}, "a key of a lease")
    if not fields.get("controller"):
        raise RunError("a lease needs the id of its controller")
    return fields


def fork_of(value: Any) -> tuple[int | None, list[str]]:
    """Step of the checkpoint (None for the newest) and ``PATH=VALUE`` edits of a fork that a page asks for.

    Raises:
        RunError: that is no such request.
    """
    fields = _object(value)
    _only(fields, {"step", "edits", "controller"}, "a key of a fork")
    step, edits = fields.get("step"), fields.get("edits", [])
    if step is not None and (isinstance(step, bool) or not isinstance(step, int) or step < 0):
        raise RunError("step must be that of a checkpoint, or left out for the newest")
    if not isinstance(edits, list) or len(edits) > MOST_EDITS:
        raise RunError(f"edits must be a list of at most {MOST_EDITS} texts, for example 'optimizer.lr=1e-3'")
    for edit in edits:
        if not isinstance(edit, str) or len(edit) > EDIT_CHARACTERS or "\0" in edit or "=" not in edit:
            raise RunError(f"{str(edit)[:40]!r} is not PATH=VALUE, for example optimizer.lr=1e-3")
    return step, edits


def ask(run: Run, request: Mapping[str, Any], name: str = "") -> str:
    """Pass a page's request on; returns its id.

    Args:
        name: of whoever asks, for people; else user and machine.

    Raises:
        RunError: the run has ended, or somebody else steers it; see :func:`refusal`.
    """
    arguments = dict(request)
    # After the look at the status: nobody is to hold a run that will not answer.
    if arguments.pop("hold", False) and run.status not in FINAL:
        claim(run.folder, arguments["controller"], name, take_over=bool(arguments.get("take_over")))
    return run.ask(**arguments)


def hold(folder: RunFolder, request: Mapping[str, Any], name: str = "") -> dict[str, Any] | None:
    """Claim, renew, take over or let go of a run's lease; returns who holds it now.

    Raises:
        RunError: somebody else holds it.
    """
    if request.get("release"):
        release(folder, request["controller"])
    else:
        claim(folder, request["controller"], name, take_over=bool(request.get("take_over")))
    return lease_holder(read_lease(folder))


def refusal(run: Run, error: RunError) -> tuple[str, str]:
    """Return what a page is told of a request that failed.

    Returns:
        One sentence for people, and a word for programs: ``leased``, ``ended``, or nothing when it made no sense.
    """
    if isinstance(error, SteeredByOther):
        return error.plain, "leased"
    return str(error), "ended" if run.status in FINAL else ""


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, bytes):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise RunError(_EXAMPLE)
    return dict(value)


def _only(fields: Mapping[str, Any], legal: set[str], what: str) -> None:
    surplus = sorted(fields.keys() - legal)
    if surplus:
        raise RunError(unknown(what, surplus[0][:40], legal))
    controller = fields.get("controller", "")
    if not isinstance(controller, str) or len(controller) > CONTROLLER_CHARACTERS:
        raise RunError(f"controller must be a text of at most {CONTROLLER_CHARACTERS} characters")
    for key in ("hold", "take_over", "release"):
        if not isinstance(fields.get(key, False), bool):
            raise RunError(f"{key} must be true or false")
