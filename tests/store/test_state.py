"""State and lock: whole after anything, tolerant to read, and never fooled by a pid."""

from __future__ import annotations

import errno
import fcntl
import json
import math
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.conftest import SmallDisk
from tests.tiny_runs import wait_until
from workbench.base.errors import RunError
from workbench.client.summary import message_of
from workbench.store.folder import RunFolder
from workbench.store.full_disk import disk_full, fill_reserve
from workbench.store.state import (
    LOCK_VARIABLE,
    STALLED_SECONDS,
    RunState,
    actual_status,
    boot_id,
    inherited_lock,
    lock_held,
    process_identity,
    read_state,
    take_lock,
    write_state,
)

HOLDER = """
import sys, time
from pathlib import Path
from workbench.store.folder import RunFolder
from workbench.store.state import take_lock
take_lock(RunFolder(Path(sys.argv[1])))
print("held", flush=True)
time.sleep(60)
"""

FORKING_TRAINER = """
import os, sys, time
from pathlib import Path
from workbench.store.folder import RunFolder
from workbench.store.state import keep_lock
assert keep_lock(RunFolder(Path(sys.argv[1]))) is not None
child = os.fork()
if child == 0:
    time.sleep(60)
print(child, flush=True)
time.sleep(60)
"""


def test_changes_are_merged(folder: RunFolder) -> None:
    write_state(folder, status="running", step=3, loss=2.5)
    state = write_state(folder, durable=False, step=4)
    assert state == read_state(folder) == RunState(status="running", step=4, loss=2.5)


@pytest.mark.parametrize("status", ["running", "finished", "stopped", "failed"])
def test_the_speed_of_an_ended_run_is_its_mean(folder: RunFolder, status: str) -> None:
    write_state(folder, status=status, tokens=1000, seconds=4.0, tokens_per_second=900.0)
    assert read_state(folder).tokens_per_second == (900.0 if status == "running" else 250.0)


def test_a_missing_or_damaged_state_reads_as_lost(folder: RunFolder) -> None:
    for text in ("", "{", "[]", '{"status": "dancing"}', "\x00" * 100, "[" * 100_000):
        folder.state.write_text(text)
        assert read_state(folder).status == "lost"
    folder.state.unlink()
    assert "missing" in read_state(folder).message
    folder.state.mkdir()
    assert read_state(folder).status == "lost"


def test_damaged_values_and_unknown_keys_do_not_matter(folder: RunFolder) -> None:
    folder.state.write_text(json.dumps({"status": "finished", "step": "many", "loss": [], "future": 1, "tokens": 7}))
    assert read_state(folder) == RunState(status="finished", tokens=7)
    folder.state.write_text(f'{{"status": "finished", "seconds": 2.0, "tokens": 1{"0" * 400}}}')
    assert read_state(folder) == RunState(status="finished", seconds=2.0, tokens_per_second=0.0)


def test_the_state_is_no_link(folder: RunFolder, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"status": "finished"}')
    folder.state.symlink_to(other)
    assert read_state(folder).status == "lost"


def test_nan_stays_json(folder: RunFolder) -> None:
    write_state(folder, status="running", loss=math.nan)
    json.loads(folder.state.read_text(), parse_constant=lambda word: pytest.fail(word))
    loss = read_state(folder).loss
    assert loss is not None
    assert math.isnan(loss)


@pytest.mark.process
def test_two_writers_lose_nothing(folder: RunFolder) -> None:
    write_state(folder, status="running")

    def write(key: str) -> None:
        for value in range(1, 51):
            write_state(folder, durable=False, **{key: value})

    context = multiprocessing.get_context("fork")
    writers = [threading.Thread(target=write, args=("step",)), context.Process(target=write, args=("tokens",))]
    for writer in reversed(writers):
        writer.start()
    for writer in writers:
        writer.join()
    assert (read_state(folder).step, read_state(folder).tokens) == (50, 50)
    assert [path.name for path in folder.path.iterdir()] == ["state.json"]


def test_a_write_that_fails_keeps_the_old_state(folder: RunFolder) -> None:
    write_state(folder, status="running", step=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
        with pytest.raises(OSError, match="large"):
            write_state(folder, step=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert read_state(folder).step == 1
    assert [path.name for path in folder.path.iterdir()] == ["state.json"]


def test_on_a_full_disk_states_are_written_into_the_reserve(small_disk: Callable[[str], SmallDisk]) -> None:
    """Again and again, while somebody else takes every byte that gets free: no write needs new space."""
    disk = small_disk("256k")
    folder = RunFolder(disk.path / "run")
    folder.path.mkdir()
    write_state(folder, status="running", step=1)
    fill_reserve(folder)
    disk.fill()
    for step, status in enumerate(("paused", "paused", "stopping", "failed", "failed"), 2):
        write_state(folder, status=status, step=step, error=f"the disk is full at step {step}" + 9000 * "!")
        disk.fill()
        state = read_state(folder)
        assert (state.status, state.step) == (status, step)
        assert state.error.startswith(f"the disk is full at step {step}")
    disk.free()
    write_state(folder, status="running", step=9)
    assert folder.state.stat().st_size < 20_000
    assert {path.name for path in folder.path.iterdir()} == {"state.json", "reserve"}


def test_on_a_full_disk_without_a_reserve_the_old_state_stays(small_disk: Callable[[str], SmallDisk]) -> None:
    disk = small_disk("256k")
    folder = RunFolder(disk.path / "run")
    folder.path.mkdir()
    write_state(folder, status="running", step=1)
    disk.fill()
    with pytest.raises(OSError, match="space") as raised:
        write_state(folder, step=2)
    assert disk_full(raised.value)
    assert read_state(folder).step == 1


def test_a_run_whose_lock_is_free_is_lost(folder: RunFolder) -> None:
    for status in ("starting", "running", "paused", "stopping"):
        # Our own pid is as alive as can be, and its start time matches: still nobody trains this run.
        write_state(folder, status=status, **process_identity())
        assert actual_status(folder) == "lost"
    for status in ("queued", "finished", "stopped", "failed"):
        write_state(folder, status=status)
        assert actual_status(folder) == status


def test_a_silent_run_is_stalled_by_the_clock_that_nobody_sets(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    lock = take_lock(folder)
    said = {**process_identity(), "heartbeat": 1.0, "heartbeat_monotonic": now}
    write_state(folder, status="running", message="training", **said)
    for silence, status in ((0.0, "running"), (STALLED_SECONDS - 1, "running"), (STALLED_SECONDS + 1, "stalled")):
        monkeypatch.setattr(time, "monotonic", lambda later=now + silence: later)
        assert actual_status(folder) == status
    state = read_state(folder)
    assert message_of(folder, state, "stalled").startswith(f"no sign of life for 15 s: process {os.getpid()} ")
    assert message_of(folder, state, "running") == "training"
    for change in ({"heartbeat_monotonic": 0.0}, {"heartbeat_monotonic": now, "boot_id": "another"}):
        write_state(folder, **change)
        assert actual_status(folder) == "running", "no sign of life yet, or by a clock that is not ours"
    write_state(folder, status="finished", **said)
    assert actual_status(folder) == "finished"
    os.close(lock)


@pytest.mark.process
def test_the_lock_is_free_once_its_holder_is_killed(folder: RunFolder) -> None:
    write_state(folder, status="running")
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder.path)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert lock_held(folder)
        assert actual_status(folder) == "running"
        with pytest.raises(RunError, match="already being trained"):
            take_lock(folder, patience_seconds=0.1)
    finally:
        holder.kill()
    # Not yet waited for: a zombie still answers to its pid, and holds nothing.
    wait_until(lambda: psutil.Process(holder.pid).status() == psutil.STATUS_ZOMBIE, 5, "the holder's end")
    assert psutil.pid_exists(holder.pid)
    assert not lock_held(folder)
    assert actual_status(folder) == "lost"
    os.close(take_lock(folder))
    holder.communicate()


def test_who_is_forked_while_a_lock_is_held_does_not_hold_it_on(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.lock.touch()
    real, copies = os.open, list[int]()

    def opened(path: Path, flags: int, mode: int = 0o777) -> int:
        descriptor = real(path, flags, mode)
        # What a child of another thread gets, which may live for hours.
        copies.append(os.dup(descriptor))
        return descriptor

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", opened)
        write_state(folder, durable=False, status="running")
        assert not lock_held(folder)
    os.close(take_lock(folder, 0.0))
    again = os.open(folder.path, os.O_RDONLY)
    fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for descriptor in (again, *copies):
        os.close(descriptor)


def test_a_file_system_without_locks_is_no_other_trainer(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", unknown)
    with pytest.raises(OSError, match="Function not implemented"):
        take_lock(folder)


def test_readers_never_keep_a_trainer_out(folder: RunFolder) -> None:
    folder.lock.touch()
    over = threading.Event()
    readers = [threading.Thread(target=lambda: [lock_held(folder) for _ in iter(over.is_set, True)]) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(20):
            os.close(take_lock(folder))
    finally:
        over.set()
        for reader in readers:
            reader.join()


def test_a_foreign_descriptor_is_no_lock(folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.lock.touch()
    with (tmp_path / "other").open("w") as other:
        monkeypatch.setenv(LOCK_VARIABLE, str(other.fileno()))
        assert inherited_lock(folder) is None
    for text in ("", "x", "99999", "-1"):
        monkeypatch.setenv(LOCK_VARIABLE, text)
        assert inherited_lock(folder) is None


@pytest.mark.process
def test_forked_children_neither_hold_the_lock_nor_outlive_the_trainer(folder: RunFolder) -> None:
    lock = take_lock(folder)
    trainer = subprocess.Popen(
        [sys.executable, "-c", FORKING_TRAINER, str(folder.path)],
        stdout=subprocess.PIPE,
        pass_fds=[lock],
        env={**os.environ, LOCK_VARIABLE: str(lock)},
    )
    os.close(lock)
    assert trainer.stdout is not None
    child = int(trainer.stdout.readline())
    assert lock_held(folder)
    trainer.kill()
    trainer.wait()
    trainer.stdout.close()
    # The child may have been forked and not yet have run at all: give it a moment.
    wait_until(lambda: not lock_held(folder), 2, "the end of the lock")

    def gone() -> bool:
        return not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE

    wait_until(gone, 2, "the forked child's end")


def test_identity_names_process_and_boot() -> None:
    identity = process_identity()
    assert identity["pid"] == os.getpid()
    assert 0 <= time.time() - identity["pid_started"] < 3600 * 24
    assert identity["boot_id"] == boot_id() != ""
