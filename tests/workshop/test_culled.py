"""A learner's server is stopped as systemd stops a unit: its control group gets signals, or its first process alone.

systemd itself is not needed: a control group is made by hand where this machine lets us, and gets the same signals.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.tiny_runs import tiny_recipe, wait_until
from workbench.client.run import Run
from workbench.client.run_list import runs

_SERVER = """
import os, sys, time
open(sys.argv[1], "w").write(str(os.getpid()))
import workbench as wb
wb.launch(wb.Recipe.load(sys.argv[2]), runs_dir=sys.argv[3], say=None)
time.sleep(1000)
"""


@pytest.fixture
def unit() -> Iterator[Path]:
    """A control group of our own, as a unit of systemd has one."""
    places = [Path("/sys/fs/cgroup/systemd"), Path("/sys/fs/cgroup")]
    for place in places:
        folder = place / f"workbench-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        if (folder / "cgroup.procs").exists():
            break
        folder.rmdir()
    else:
        pytest.skip("no control group can be made here")
    yield folder
    for pid in _members(folder):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not _members(folder), what="the end of the group")
    folder.rmdir()


def _members(unit: Path) -> list[int]:
    return [int(pid) for pid in (unit / "cgroup.procs").read_text().split()]


@pytest.mark.process
@pytest.mark.extended
@pytest.mark.parametrize("mode", ["control-group", "process"])
def test_a_run_outlives_its_server_or_ends_with_a_checkpoint(
    unit: Path, corpus: Path, tmp_path: Path, mode: str
) -> None:
    recipe = tiny_recipe(corpus, steps=1_000_000).save(tmp_path / "recipe.json")
    command = [sys.executable, "-c", _SERVER, str(tmp_path / "pid"), str(recipe), str(tmp_path / "runs")]
    server = subprocess.Popen(command, preexec_fn=lambda: (unit / "cgroup.procs").write_text(str(os.getpid())) and None)
    wait_until(lambda: any(run.status == "running" and run.state.step > 3 for run in runs(tmp_path / "runs")), 120)
    run: Run = runs(tmp_path / "runs")[0]
    assert run.state.pid in _members(unit), "a session of its own is still in the unit's control group"
    for pid in _members(unit) if mode == "control-group" else [server.pid]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    server.wait(timeout=30)
    if mode == "process":
        step = run.state.step
        wait_until(lambda: run.state.step > step + 3, 60, "another step")
        assert run.status == "running"
    else:
        wait_until(lambda: run.status == "stopped", 60, "the final word")
        assert list(run.folder.checkpoints.glob("step-*")), "with a checkpoint"
    with suppress(Exception):
        run.stop(timeout=30)
    time.sleep(0.5)
