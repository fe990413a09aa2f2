"""The process that copies a run from elsewhere, or to there, until the run has ended; no torch.

It outlives notebooks as a run does. A connection that is lost is tried again for as long as the copy is there; until it
is back the copy says since when there is no news, and never that the run has failed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from workbench.base.errors import RunError, WorkbenchError
from workbench.base.files import file_locked
from workbench.launchers.processes import child_environment, module_command
from workbench.store.control import request_ids
from workbench.store.find import find, typed
from workbench.store.folder import RunFolder, is_run_id, read_object, write_json
from workbench.store.mirror import Mirror, Place, place_at, reason
from workbench.store.state import actual_status, read_state

EVERY_SECONDS, LEGAL_SECONDS = 2.0, (0.1, 5.0)
"""Between two looks; at most so many that a silence of 15 s stays one."""
ANSWER_SECONDS = 0.3
"""Between two looks while a request waits for its answer."""
PATIENCE_SECONDS = 120
"""For one round; a connection may hang for ever."""
_MOST_SECONDS_APART = 15.0
FOLLOW, PUBLISH = "follow", "publish"


def folder_of(run: str | Path | RunFolder, runs_dir: str | Path | None = None) -> RunFolder:
    """Return the folder of what a user typed for a run; that of a URL is a copy, which is brought up to date.

    Raises:
        RunError: no such run, or the URL cannot be followed.
    """
    if isinstance(run, RunFolder):
        return run
    return followed(run, runs_dir) if isinstance(run, str) and "://" in run else find(*typed(run, runs_dir))


def followed(
    url: str, runs_dir: str | Path | None = None, *, every: float = EVERY_SECONDS, checkpoints: bool = False
) -> RunFolder:
    """Copy a run as far as it has got, and start the process that goes on with it; returns the folder of the copy.

    Args:
        url: of the run's folder, as fsspec writes it.
        every: seconds between two looks. checkpoints: copy the newest checkpoint, too.

    Raises:
        RunError: it cannot be reached, it is no run, or a run of its id is here already.
    """
    _check_every(every)
    there = place_at(url)
    run_id = there.path.rpartition("/")[2]
    try:
        names = set(there.names(""))
    except Exception as error:
        raise RunError(reason(there.url, error)) from None
    if not names & {"recipe.json", "state.json"}:
        runs = sorted(filter(is_run_id, names))[-5:]
        more = f"; it holds {', '.join(runs)}: add one of them to the URL" if runs else ""
        raise RunError(f"no run at {there.url}: that folder has neither recipe.json nor state.json{more}")
    folder = RunFolder.of(run_id, runs_dir)
    known = read_state(folder).afar
    if folder.path.exists() and known != there.url:
        what = f"a copy of {known}" if known else "no copy"
        raise RunError(f"run '{run_id}' is in {folder.path.parent} already, and is {what}: nothing to follow")
    if file_locked(folder.following):
        return folder
    try:
        mirror = _mirror(FOLLOW, folder, there, checkpoints)
        mirror.round(_copied(there.url))
    except Exception as error:
        # Without its state it would look like a run of this machine.
        if not known:
            shutil.rmtree(folder.path, ignore_errors=True)
        raise RunError(reason(there.url, error)) from None
    if not mirror.ended:
        _start(folder, FOLLOW, there.url, every, checkpoints)
    return folder


def published(folder: RunFolder, url: str, *, every: float = EVERY_SECONDS) -> str:
    """Copy a run to a place that others can follow, and start the process that goes on with it; returns its URL there.

    Args:
        url: of a folder of runs.

    Raises:
        RunError: it cannot be written to, or the run is a copy itself.
    """
    _check_every(every)
    if afar := read_state(folder).afar:
        raise RunError(f"run '{folder.id}' is a copy of {afar}: publish it where it trains")
    if file_locked(folder.following):
        raise RunError(f"run '{folder.id}' is being published already; `workbench publish {folder.id} --end` ends that")
    there = place_at(f"{url.rstrip('/')}/{folder.id}")
    mirror = _mirror(PUBLISH, folder, there)
    try:
        mirror.round(_told(folder))
    except Exception as error:
        raise RunError(reason(there.url, error)) from None
    if not mirror.ended:
        _start(folder, PUBLISH, there.url, every)
    return there.url


def end(folder: RunFolder) -> bool:
    """End the process that copies a run; returns whether there was one. The run goes on."""
    if not file_locked(folder.following):
        return False
    try:
        os.kill(int(folder.following.read_text()), signal.SIGTERM)
    except (OSError, ValueError) as error:
        raise RunError(f"the process that copies run '{folder.id}' cannot be ended: {error}") from None
    return True


def main(argv: list[str] | None = None) -> int:
    """Copy a run until it has ended: direction, folder, URL, seconds between two looks, and 1 for checkpoints."""
    direction, path, url, every, checkpoints = sys.argv[1:] if argv is None else argv
    folder = RunFolder(Path(path))
    lock = os.open(folder.following, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0  # another process copies it
    os.ftruncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())
    signal.signal(signal.SIGALRM, _too_long)
    _go_on(direction, folder, url, float(every), checkpoints == "1")
    return 0


def _go_on(direction: str, folder: RunFolder, url: str, every: float, checkpoints: bool) -> None:
    mirror: Mirror | None = None
    pause = every
    state = _copied(url) if direction == FOLLOW else _told(folder)
    while folder.path.is_dir():
        signal.alarm(PATIENCE_SECONDS)
        try:
            mirror = mirror or _mirror(direction, folder, place_at(url), checkpoints)
            behind = mirror.round(state)
            if mirror.ended:
                return
            pause = 0.0 if behind else min(every, ANSWER_SECONDS) if mirror.asked else every
        # Of any library: whatever went wrong, the run goes on and there is no news of it.
        except Exception as error:
            mirror, pause = None, min(max(1.0, 2 * pause), _MOST_SECONDS_APART)
            why = str(error) if isinstance(error, WorkbenchError) else reason(url, error)
            print(time.strftime("%H:%M:%S"), why, flush=True)
            if direction == FOLLOW and folder.path.is_dir():
                write_json(folder.state, read_object(folder.state) | {"message": why}, durable=False)
        finally:
            signal.alarm(0)
        _rest(folder, pause, wake=mirror is not None)


def _rest(folder: RunFolder, seconds: float, *, wake: bool) -> None:
    """Wait, but not while somebody here asks for something."""
    known, until = request_ids(folder), time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and not (wake and request_ids(folder) - known):
        time.sleep(min(left, 0.1))


def _mirror(direction: str, folder: RunFolder, there: Place, checkpoints: bool = False) -> Mirror:
    here = place_at(f"file://{folder.path}")
    run, watchers = (there, here) if direction == FOLLOW else (here, there)
    return Mirror(run, watchers, checkpoints=checkpoints)


def _copied(url: str) -> Any:
    return lambda state, news: {**state, "afar": url, "heartbeat": news}


def _told(folder: RunFolder) -> Any:
    """A watcher elsewhere sees no locks: what they say here is written down for it."""
    return lambda state, news: {**state, "status": "lost"} if actual_status(folder) == "lost" else state


def _start(folder: RunFolder, direction: str, url: str, every: float, checkpoints: bool = False) -> None:
    command = module_command(__name__, direction, str(folder.path), url, str(every), str(int(checkpoints)))
    with folder.following_log.open("wb") as log:
        # A session of its own: it goes on when the kernel is restarted.
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=child_environment(), start_new_session=True
        )


def _check_every(seconds: float) -> None:
    if not LEGAL_SECONDS[0] <= seconds <= LEGAL_SECONDS[1]:
        raise RunError(f"every: {seconds:g} s between two looks; legal: {LEGAL_SECONDS[0]:g} to {LEGAL_SECONDS[1]:g}")


def _too_long(*_: object) -> None:
    raise TimeoutError(f"no answer within {PATIENCE_SECONDS} s")


if __name__ == "__main__":
    sys.exit(main())
