"""The lease of a run: one controller holds it and steers, and any other may take over.

``control/lease.json`` holds the holder, when the lease ends, and an epoch that grows with every take-over. A request
carries the epoch in which it was sent; the trainer refuses those of an earlier one, so that what was asked before a
take-over does not happen after it. Nobody needs a lease: as long as none is held, anybody's requests count.

It keeps people from steering against each other by accident. It is no protection: whoever may write to the folder may
take over. So wall clocks do for its end: one that is set early or late costs a take-over at worst. Standard library
only.
"""

from __future__ import annotations

import getpass
import math
import os
import socket
import time
from dataclasses import asdict, dataclass
from typing import Any

from workbench.base.errors import RunError
from workbench.store.folder import RunFolder, read_object, write_json
from workbench.store.state import exclusive

# Long enough for a page that renews every few seconds and sleeps in a background tab, short enough to wait for.
LEASE_SECONDS = 30.0


class SteeredByOther(RunError):
    """Somebody else holds the lease.

    Attributes:
        plain: that alone, for a page, which shows the run and has a button to take over.
    """

    def __init__(self, run: str, who: str, way_on: str) -> None:
        super().__init__(f"run '{run}' is steered by {who}; {way_on}")
        self.plain = f"it is steered by {who}"


@dataclass(frozen=True)
class Lease:
    """One reading of ``lease.json``.

    Attributes:
        controller: id of the holder; empty when nobody holds it.
        epoch: grows with every take-over; not when a lease that was let go, or ran out, is claimed by another.
        expires: Unix time at which it ends unless it is renewed.
    """

    controller: str = ""
    name: str = ""
    epoch: int = 0
    expires: float = 0.0

    def held(self) -> bool:
        """Return True while somebody holds it."""
        # Bounded above, too: a clock that was ahead when it was written must not lock others out for years.
        return bool(self.controller) and 0 < self.expires - time.time() <= 2 * LEASE_SECONDS


def read_lease(folder: RunFolder) -> Lease:
    """Read the lease of a run; a missing or damaged one is held by nobody."""
    raw = read_object(folder.lease)
    controller, name, epoch = (raw.get(key) for key in ("controller", "name", "epoch"))
    return Lease(
        controller if isinstance(controller, str) else "",
        name if isinstance(name, str) else "",
        epoch if isinstance(epoch, int) else 0,
        _time(raw.get("expires")),
    )


def lease_holder(lease: Lease) -> dict[str, Any] | None:
    """Return ``{"controller", "name", "seconds"}`` of a lease that is held, else None.

    Seconds left, since the clock of whoever reads them may be another one.
    """
    if not lease.held():
        return None
    seconds = round(lease.expires - time.time(), 1)
    return {"controller": lease.controller, "name": lease.name, "seconds": seconds}


def claim(folder: RunFolder, controller: str, name: str = "", *, take_over: bool = False) -> Lease:
    """Hold the lease of a run for the next :data:`LEASE_SECONDS`; call again to renew it.

    Args:
        controller: names the caller, the same at every renewal: a random id per page or program.
        name: what others are told; else user and machine.
        take_over: also from somebody who holds it.

    Raises:
        SteeredByOther: somebody else holds it, and ``take_over`` was not asked for.
        RunError: it cannot be written.
    """
    if not controller:
        raise RunError("a lease needs the id of its controller, for example uuid.uuid4().hex")
    return _change(folder, controller, name or whoami(), take_over)


def release(folder: RunFolder, controller: str) -> None:
    """Let go of the lease, if ``controller`` holds it."""
    if read_lease(folder).controller == controller:
        _change(folder, "", "", False, only=controller)


def admit(folder: RunFolder, controller: str = "", *, take_over: bool = False) -> int:
    """Return the epoch for a request of ``controller`` (empty for one who holds no lease and needs none).

    Args:
        take_over: end the lease of somebody else; the run is then free, and what they asked before is void.

    Raises:
        SteeredByOther: somebody else holds the lease; the message names them and the way to take over.
    """
    lease = read_lease(folder)
    if not lease.held() or lease.controller == controller:
        return lease.epoch
    if not take_over:
        raise _taken(folder, lease)
    return _change(folder, controller, whoami() if controller else "", True).epoch


def superseded(folder: RunFolder, epoch: int) -> str:
    """Return why a request of ``epoch`` no longer counts; empty when it does."""
    lease = read_lease(folder)
    if lease.epoch <= epoch:
        return ""
    return f"{lease.name or 'somebody'} has taken over the run since this was asked; ask again if it is still wanted"


def user_name() -> str:
    """Return the user of this process, for people."""
    try:
        return getpass.getuser()
    # A container may run under a number that no user has.
    except (KeyError, OSError):
        return str(os.getuid())


def whoami() -> str:
    """Return ``user@machine`` of this process, for people."""
    return f"{user_name()}@{socket.gethostname()}"


def _change(folder: RunFolder, controller: str, name: str, take_over: bool, only: str | None = None) -> Lease:
    try:
        folder.control.mkdir(exist_ok=True)
        # Read and written under one lock: of two who claim at once, one is told about the other.
        with exclusive(folder.control):
            lease = read_lease(folder)
            if only is not None and lease.controller != only:
                return lease
            # Only where somebody is pushed out: what was asked while nobody else steered stays asked.
            pushed_out = only is None and lease.held() and lease.controller != controller
            epoch = lease.epoch + pushed_out
            if pushed_out and not take_over:
                raise _taken(folder, lease)
            expires = time.time() + LEASE_SECONDS
            after = Lease(controller, name[:80], epoch, expires) if controller else Lease(epoch=epoch)
            # Not synced: it is worth half a minute.
            write_json(folder.lease, asdict(after), durable=False)
    except OSError as error:
        raise RunError(f"the lease of run '{folder.id}' could not be written: {error}") from None
    return after


def _taken(folder: RunFolder, lease: Lease) -> SteeredByOther:
    left = max(1, round(lease.expires - time.time()))
    # A server puts the name that it knows somebody by before user and machine.
    oneself = whoami() in lease.name
    perhaps = "; that may be you, in another page, notebook or terminal" if oneself else ""
    return SteeredByOther(
        folder.id,
        f"{lease.name or lease.controller} (free in {left} s unless they go on){perhaps}",
        f"{'' if oneself else 'ask them, or '}take over: `--take-over` on the command line, take_over=True in Python",
    )


def _time(value: Any) -> float:
    # Of no clock: a damaged file, or one of somebody who means to hold it for ever.
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else 0.0
