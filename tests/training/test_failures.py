"""What a run has to survive from outside: a full disk, and a folder that is deleted under it."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SmallDisk
from tests.training.conftest import LiveRun
from tests.training.test_resume import assert_same, train
from workbench.client.listing import Listing
from workbench.client.summary import summary
from workbench.recipes.recipe import Recipe
from workbench.store import control, folder, state
from workbench.store.folder import RunFolder, read_json
from workbench.store.full_disk import fill_reserve
from workbench.store.state import write_state
from workbench.telemetry import streams as telemetry
from workbench.training import checkpoint, worker
from workbench.training.task import RecipeTask

Live = Callable[..., LiveRun]
Line = tuple[tuple[str, int], ...]
# Every kind of write within two steps: telemetry, state, evaluations, checkpoints.
SHORT = {"amount": 2, "unit": "steps", "evaluations": 2, "checkpoint_seconds": 1e-6}


def test_a_resume_on_a_full_disk_does_not_cost_the_tokenizer(tiny: Recipe, tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    task = RecipeTask(tiny)
    task.prepare(run, False, lambda line: None)
    whole = run.tokenizer.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
        with pytest.raises(OSError, match="large"):
            task.prepare(run, True, lambda line: None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert run.tokenizer.read_bytes() == whole


class FaultyDisk:
    """Sees the writes of a run in this process; from one on that comes from a chosen line all fail, until freed.

    Attributes:
        lines: from which the run has written so far: the innermost three of its stack.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refusal: int) -> None:
        self.refusal = refusal
        self.lines: dict[Line, None] = {}
        self.line: Line | None = None
        self.full = False
        for owner, name in (
            (folder, "write_bytes"), (telemetry.os, "write"), (Path, "write_text"), (checkpoint, "save_file"),
            (checkpoint, "_sync_and_hash"), (checkpoint, "sync_folder"),
        ):  # fmt: skip
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def write(*arguments: Any, **options: Any) -> Any:
            stack = traceback.extract_stack(sys._getframe(1), limit=3)
            line = tuple((frame.name, frame.lineno or 0) for frame in stack)
            # A heartbeat comes when it likes; what it writes comes from other lines, too.
            if not any(name == "_beat" for name, _ in line):
                self.lines[line] = None
            self.full = self.full or line == self.line
            if self.full:
                raise OSError(self.refusal, os.strerror(self.refusal))
            return real(*arguments, **options)

        return write

    def free(self) -> None:
        self.line, self.full = None, False


@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.parametrize("refusal", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_refuses_any_write_pauses_the_run(
    refusal: int,
    tiny: Recipe,
    live: Live,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    """At every line that writes, in turn; once it takes writes again a resumed run ends as if nothing had been."""
    recipe, disk = tiny.with_(budget=SHORT), FaultyDisk(monkeypatch, refusal)
    whole, said = live(recipe), []

    def nap(seconds: float, real: Callable[[float], None] = time.sleep) -> None:
        if sys._getframe(1).f_code.co_name != "_stand_still":
            real(seconds)
        elif disk.full:
            said.append(run.state)
            disk.free()
            control.send(run.folder, "resume")

    monkeypatch.setattr("workbench.training.session.time.sleep", nap)
    straight = train(whole)
    lines, paused = list(disk.lines), 0
    for line in lines:
        record_property("write site", " > ".join(f"{name}:{number}" for name, number in line))
    for line in lines:
        run = live(recipe)
        write_state(run.folder, status="starting")
        fill_reserve(run.folder)
        disk.line, ended = line, None
        try:
            resumed = train(run)
        except OSError as error:
            ended = error
        finally:
            disk.free()
        if ended is not None:
            # Before the first step there is nothing to wait for: it fails, and says why.
            assert os.strerror(refusal) in str(ended), line
            assert not run.telemetry.series("loss")[0], line
            continue
        assert_same(straight, resumed)
        assert read_json(run.folder.evaluations)["result"]["steps"] == 2, line
        assert [s["step"] for s in run.telemetry.scalars if "loss" in s] == [1, 2], line
        assert run.state.status == "finished", line
        if said:
            standing = said.pop()
            # There is a reserve of space, and none of permission: then the state says so once it can be written.
            if refusal == errno.ENOSPC:
                assert standing.status == "paused", line
                assert os.strerror(refusal) in standing.message, line
            paused += 1
    assert paused > len(lines) // 2, "most are those of a run in training"


def test_a_really_full_disk_pauses_the_run_and_freed_space_lets_it_go_on(
    tiny: Recipe, live: Live, small_disk: Callable[[str], SmallDisk]
) -> None:
    """A real worker whose folder, log included, is on a file system without a free byte."""
    disk = small_disk("4m")
    # More than it will ever take: how far it gets depends on the machine.
    recipe = tiny.with_(budget={"amount": 100_000, "unit": "steps", "evaluations": 1, "checkpoint_seconds": 0.2})
    whole, run = live(recipe), live(recipe, disk.path)
    fill_reserve(run.folder)
    run.fork()
    run.until(lambda run: checkpoint.checkpoints(run.folder.checkpoints))
    disk.fill()
    run.until(lambda run: run.state.status == "paused")
    assert "space" in run.state.message
    disk.fill()
    last = checkpoint.load_latest(run.folder.checkpoints)
    assert last is not None
    assert last.damaged == {}
    before = run.state.heartbeat
    run.until(lambda run: run.state.heartbeat > before)
    assert run.state.status == "paused", "and a full disk does not keep it from saying that it is alive"
    disk.free()
    step = run.state.step
    control.send(run.folder, "resume")
    run.until(lambda run: run.state.step > step)
    control.send(run.folder, "stop")
    assert run.wait() == 0, run.log
    assert run.state.status == "stopped"
    end = checkpoint.load_latest(run.folder.checkpoints)
    assert end is not None
    assert_same(train(whole, stop_at=end.step), end)
    assert run.telemetry.series("loss") == whole.telemetry.series("loss")


def test_a_worker_that_ends_on_a_full_disk_says_why(
    tiny: Recipe, live: Live, small_disk: Callable[[str], SmallDisk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log cannot take the traceback: the reason must be in the state before that is tried."""
    disk = small_disk("1m")
    run = live(tiny.with_(data={"paths": ("/dev/null/nowhere.jsonl",)}), disk.path)
    fill_reserve(run.folder)
    disk.fill()
    monkeypatch.setattr(worker, "keep_lock", lambda folder: 0)
    monkeypatch.setattr(worker, "die_with_parent", lambda: None)
    with run.folder.log.open("w") as log, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", log)
        assert worker.main([str(run.folder.path)]) == 1
        # What could not be written must not raise when the file is closed either.
        log.truncate(0)
    assert run.state.status == "failed"
    assert "/dev/null/nowhere.jsonl" in run.state.error


def test_a_suspended_run_is_stalled_until_it_goes_on(tiny: Recipe, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGSTOP to a real worker; the clock of day has nothing to do with it."""
    monkeypatch.setattr(state, "STALLED_SECONDS", 3.0)
    run = live(tiny.with_(budget={"amount": 10_000_000, "unit": "steps"})).fork()
    run.until(lambda run: run.steps_said > 0)
    assert run.process is not None
    listing = Listing(run.folder.path.parent)
    monkeypatch.setattr(time, "time", lambda clock=time.time: clock() + 1e6)
    run.until(lambda run: state.actual_status(run.folder) == "running")
    run.process.send_signal(signal.SIGSTOP)
    run.until(lambda run: state.actual_status(run.folder) == "stalled")
    row = summary(run.folder)
    assert row["status"] == "stalled"
    assert f"no sign of life for 0 s: process {run.process.pid} is suspended" in row["message"]
    run.until(lambda run: listing.look().rows[0]["status"] == "stalled")
    run.process.send_signal(signal.SIGCONT)
    run.until(lambda run: state.actual_status(run.folder) == "running")
    run.until(lambda run: listing.look().rows[0]["status"] == "running")
    assert "no sign of life" not in listing.look().rows[0]["message"]


def test_a_run_whose_folder_is_deleted_ends_and_leaves_nothing(tiny: Recipe, live: Live) -> None:
    """Budget for hours: only the look at its folder can end it."""
    run = live(tiny.with_(budget={"amount": 10_000_000, "unit": "steps", "checkpoint_seconds": 0.02})).fork()
    run.until(lambda run: checkpoint.checkpoints(run.folder.checkpoints))
    while run.folder.path.exists():
        shutil.rmtree(run.folder.path, ignore_errors=True)
    assert run.wait(60) == 1
    assert not run.folder.path.exists()


def test_a_paused_run_whose_folder_is_moved_ends(tiny: Recipe, live: Live, tmp_path: Path) -> None:
    run = live(tiny)
    control.send(run.folder, "pause")
    run.fork()
    run.until(lambda run: run.state.status == "paused")
    moved = RunFolder(run.folder.path.rename(tmp_path / "moved"))
    assert run.wait(60) == 1
    assert not run.folder.path.exists()
    assert checkpoint.load_latest(moved.checkpoints) is not None
