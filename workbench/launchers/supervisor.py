"""The process between a launcher and a trainer: it holds the run's lock, waits for its turn on this machine, then for
the trainer's end, and writes down how it ended.

``python -m workbench.launchers.supervisor RUN_FOLDER [--resume] [--with-parent PID]``, from any working folder, process
group and set of open files: all else is in the run folder. Small on purpose (no torch, no threads): it must outlive
whatever happens to the trainer. The trainer dies with it, so there are never orphans. One that has waited for its turn
is replaced by one that is forked from a process held ready, where there is one.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil

from workbench.base.errors import RunError
from workbench.base.text import escape_unprintable, sentence
from workbench.launchers import fork_server
from workbench.launchers.create import open_attempt
from workbench.launchers.giving_way import GivingWay, still_trained
from workbench.launchers.launched import working_folder
from workbench.launchers.nodes import Nodes, NodesError
from workbench.launchers.processes import child_environment
from workbench.launchers.queue.limits import SecondsLimit
from workbench.launchers.queue.orphans import start_orphans
from workbench.launchers.queue.ticket import Needs
from workbench.launchers.queue.turn import ABANDONED, Turn, mark_waiting, obeyed_stop, turn_of, wait_for_turn
from workbench.launchers.report import report
from workbench.launchers.trainers import Starter, start_all, start_trainer, wait_for_all, why_ended
from workbench.store import control
from workbench.store.checkpoints import has_checkpoint
from workbench.store.folder import RunFolder
from workbench.store.in_process import resume_text
from workbench.store.reached import beyond, tail
from workbench.store.state import (
    FINAL,
    LEFT_TO_SUPERVISOR,
    lock_held,
    process_identity,
    read_state,
    take_lock,
    write_state,
)
from workbench.telemetry.streams import add_event

REPORT_LIMIT_SECONDS = 300
REPORT_VARIABLE = "WORKBENCH_REPORT"
"""``off``: no report is written at the end of a run, for many short ones whose reports nobody opens."""
_LOG_LINES = 20
_TAKE_OVER_SECONDS = 20.0


def main(argv: list[str] | None = None, start: Starter | None = None, nodes: Nodes | None = None) -> int:
    """Supervise one attempt of a run; returns the trainer's exit code (128 + n after signal n).

    Args:
        start: of the trainer; None for a new process.
        nodes: that a cluster's launcher gives to the run, which may start it again after ``AGAIN``; None: this one.
    """
    parser = argparse.ArgumentParser(prog="workbench.launchers.supervisor")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--with-parent", type=int, metavar="PID", help="end when this process, the launcher, ends")
    arguments = sys.argv[1:] if argv is None else argv
    options = parser.parse_args(arguments)
    folder = RunFolder(options.folder.absolute())
    _open_standard_files()
    try:
        lock = take_lock(folder)
        if still_trained(folder, found := read_state(folder)):
            raise RunError(f"run '{folder.id}' is trained on {found.host}; locks of its folder do not reach from there")
        resume = _take_over(folder) or options.resume
        turn = turn_of(folder)
        mark_waiting(folder, turn.ticket if turn.running == turn.ticket.running else replace(turn.ticket, running=True))
    except (RunError, OSError) as error:
        _log(f"supervisor: {error}")
        return 2
    # Sent to whole groups by a terminal that is interrupted or closed; whether the run ends is for requests to decide.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # A service manager that ends us asks politely first: pass it on as a request, so that a checkpoint is kept.
    way = GivingWay(folder)

    def end(number: int, _: object) -> None:
        if nodes is not None and nodes.again and (why := way.asked(number)):
            way.begin(why)
        else:
            _ask_to_stop(folder)

    signal.signal(signal.SIGTERM, end)
    if nodes is not None:
        # A cluster's word that the time of a job is nearly up.
        signal.signal(signal.SIGUSR1, end)
    _settle_in(folder)
    waits = not turn.running
    abandoned = _abandoned(options.with_parent)
    why = wait_for_turn(folder, lock, turn, abandoned)
    if turn.problem:
        _log(f"supervisor: {turn.problem}")
    if waits and not why and options.with_parent is None:
        held = _replaced(folder, arguments, lock, turn)
        if held is None:
            return 0
        lock, turn = held
    if why:
        code = _end_unbegun(folder, why)
    else:
        code = _supervise(folder, lock, turn, resume, abandoned, start or start_trainer, nodes, way)
    turn.leave()
    # From here on the run may be resumed or deleted: a report needs no lock.
    os.close(lock)
    # Others of this user may wait without a process; nobody else may come by.
    start_orphans()
    if not why and read_state(folder).status in ("finished", "stopped") and os.environ.get(REPORT_VARIABLE) != "off":
        _report(folder)
    return code if code >= 0 else 128 - code


def _open_standard_files() -> None:
    """Open what nobody gave us, or the run's lock would get the number of standard output."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)


def _settle_in(folder: RunFolder) -> None:
    """Print into the log of a run from now on, and work where relative paths of its recipe start."""
    with contextlib.suppress(OSError):
        log = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        for number in (1, 2):
            os.dup2(log, number)
        os.close(log)
    # Python has none where it was started without.
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    escape_unprintable()
    # Else it trains where it was started, as one whose folder was deleted.
    with contextlib.suppress(OSError):
        os.chdir(working_folder(folder))


def _take_over(folder: RunFolder) -> bool:
    """Take over the attempt that a launcher has begun, or begin one; returns True if it goes on from a checkpoint.

    Raises:
        RunError: the run has ended: a launcher that starts it twice must not train it twice.
        OSError: the folder cannot be written to.
    """
    state = read_state(folder)
    if state.status in ("queued", "starting"):
        write_state(folder, **process_identity())
    elif not folder.state.exists():
        # Started by hand in a folder that somebody made.
        open_attempt(folder, 1)
    elif state.final and state.status != "lost":
        raise RunError(f"run '{folder.id}' has ended ({state.status}); `workbench resume {folder.id}` begins again")
    else:
        # Killed with its trainer, and started again, as a cluster does.
        open_attempt(folder, state.attempt + 1)
    # A fork begins with a checkpoint.
    return read_state(folder).attempt > 1 or folder.origin.exists()


def _replaced(folder: RunFolder, arguments: list[str], lock: int, turn: Turn) -> tuple[int, Turn] | None:
    """Give lock and turn to a process that is held ready and has loaded torch; returns them where there is none."""
    process = fork_server.hand_over(arguments, child_environment())
    if process is None:
        return lock, turn
    try:
        turn.pass_on()
    except OSError:
        process.kill()
        return lock, turn
    # It waits for the lock, and its launcher calls the run alive as long as this process is there.
    os.close(lock)
    deadline = time.monotonic() + _TAKE_OVER_SECONDS
    while time.monotonic() < deadline and process.is_running() and not _unreaped(process):
        if lock_held(folder):
            return None
        time.sleep(0.01)
    try:
        return take_lock(folder), turn_of(folder)
    except RunError:
        return None


def _end_unbegun(folder: RunFolder, why: str) -> int:
    """Write down that a run's turn will not come; returns the exit code."""
    try:
        if why == ABANDONED:
            write_state(folder, status="failed", error=_ABANDONED)
        else:
            write_state(folder, status="stopped", message=why)
        control.dismiss_pending(folder, why)
    except OSError as error:
        _log(f"supervisor: {why}, which could not be written: {error}")
    return 1 if why == ABANDONED else 0


def _abandoned(launcher: int | None) -> Callable[[], bool]:
    """Return a test for the end of the process that a run is tied to; None: it is tied to none.

    Looked at rather than asked for with prctl, which would bind us to the thread that launched the run.
    """
    if launcher is None:
        return lambda: False
    if os.getppid() == launcher:
        # An orphan is handed to another process.
        return lambda: os.getppid() != launcher
    # Forked from one that was held ready, unless the launcher has ended already.
    try:
        process = psutil.Process(launcher)
    except psutil.Error:
        return lambda: True
    return lambda: not process.is_running() or _unreaped(process)


def _unreaped(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True


def _supervise(
    folder: RunFolder,
    lock: int,
    turn: Turn,
    resume: bool,
    left: Callable[[], bool],
    start: Starter,
    given: Nodes | None,
    way: GivingWay,
) -> int:
    nodes = given or Nodes(processes=Needs.of(folder, {}).processes)
    kills_before, began = _out_of_memory_kills(), read_state(folder).step
    logs_before = [_size(folder.log_of(rank)) for rank in range(nodes.size)]
    try:
        if given and (why := _meet(folder, nodes)):
            return _end_unbegun(folder, why)
        arguments = [str(folder.path), *(["--resume"] if resume else [])]
        where = {"CUDA_VISIBLE_DEVICES": turn.gpu} if turn.gpu else {}
        where |= {LEFT_TO_SUPERVISOR: "1"} if given else {}
        trainers = start_all(start, arguments, child_environment(**where), lock, nodes)
    except (OSError, NodesError) as error:
        nodes.end()
        said = str(error) if isinstance(error, NodesError) else f"the trainer could not be started: {error}"
        write_state(folder, status="failed", error=said, exit_code=127)
        return 127
    lost, limit = "", SecondsLimit(folder)

    def abandoned() -> bool:
        nonlocal lost
        turn.keep()
        limit.look()
        lost = lost or nodes.lost()
        return bool(left() or lost or way.ready())

    end = wait_for_all(trainers, abandoned)
    lost = nodes.end() or (lost if nodes.failed is None else "")
    if way.why and end.code and not left():
        return way.write(lock)
    rank, code, on = nodes.failed or (*(end.failed or (0, end.code)), "")
    who = f"process {rank} of {nodes.size}{on}" if nodes.size > 1 else "the trainer"
    try:
        no_memory = code == -signal.SIGKILL and not on and _out_of_memory_kills() > kills_before
        why = _ABANDONED if left() else why_ended(code, no_memory, has_checkpoint(folder.checkpoints), who)
        why = f"{lost}." if lost else why
        taken_away = end.code and not no_memory and (lost or code == -signal.SIGKILL)
        # What dies before its first step would do so on other nodes, too.
        if nodes.again and taken_away and read_state(folder).step > began:
            way.why = why
            return way.write(lock)
        words = tail(folder.log_of(rank), _LOG_LINES, logs_before[rank])
        _record_end(folder, lock, end.code, why, words, repeats=no_memory and not end.abandoned)
    except OSError as error:
        _log(f"supervisor: the end of the run (exit code {end.code}) could not be written: {error}")
    return end.code


def _meet(folder: RunFolder, nodes: Nodes) -> str:
    """Wait for the other nodes of a run; returns why it is to end, if it is."""

    def say(message: str) -> None:
        if read_state(folder).message != message:
            write_state(folder, status="starting", message=message)

    say("starting")
    return nodes.gather(folder, lambda: obeyed_stop(folder), say)


def _ask_to_stop(folder: RunFolder) -> None:
    try:
        control.send(folder, "stop", take_over=True, by="the system")
    except RunError as error:
        _log(f"supervisor: asked to end, but the trainer cannot be told: {error}")


def _record_end(folder: RunFolder, lock: int, code: int, why: str, words: str = "", *, repeats: bool = False) -> None:
    """Have the state say how the run ended, unless its trainer has.

    Args:
        words: the last of this attempt in the log; what an earlier one said is no news.
    """
    if os.fstat(lock).st_nlink == 0:
        return  # the run was deleted, and nothing of it is to come back
    state = read_state(folder)
    recorded = state.status in ("finished", "stopped") or (state.status == "failed" and bool(state.error))
    if recorded or (state.status in FINAL and code == 0):
        # A trainer that dies while it closes down has already told how the run ended, and its files are whole.
        write_state(folder, exit_code=code)
    else:
        lines = [f"  {line}" for line in words.splitlines() if line.strip()]
        last_words = "\n".join(["\nIts last words:", *lines]) if lines else ""
        told = why if repeats else f"{why} {sentence(resume_text(folder))}"
        got = beyond(folder, state)
        write_state(
            folder, status="failed", exit_code=code, error=told + last_words, message="", repeats=repeats, **got
        )
        step = got.get("step", state.step)
        with contextlib.suppress(OSError):
            add_event(folder.telemetry, step, "error", f"attempt {state.attempt} ended at step {step:,}: {told}")
    control.dismiss_pending(folder, "the run has ended")


_ABANDONED = f"{ABANDONED}, and on='inline' means that the run ends with it."


def _log(text: str) -> None:
    # The log may lie on a disk that is full, and how the run ended is still to be written.
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except OSError:
        return 0


def _out_of_memory_kills() -> int:
    """Return how often this kernel has killed for memory since it booted; 0 where it does not say."""
    try:
        counters = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
        return int(counters.get("oom_kill", 0))
    except (OSError, ValueError):
        return 0


def _report(folder: RunFolder) -> None:
    """Write ``report.html`` best effort: a picture that cannot be drawn does not make a good run fail."""
    try:
        # The log of a run that was resumed holds its path already.
        told = folder.report.exists()
        path = report([folder], seconds=REPORT_LIMIT_SECONDS)
        if not told:
            print(path, flush=True)
    except (RunError, OSError) as error:
        _log(f"supervisor: no report: {error}")


if __name__ == "__main__":
    sys.exit(main())
