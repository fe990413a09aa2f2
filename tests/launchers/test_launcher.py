"""What all launchers share: becoming responsible for a run, finding it again, how processes are started."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from workbench.base.errors import RunError
from workbench.base.heap_settings import heap_settings
from workbench.launchers.launcher import begin, child_environment, module_command
from workbench.launchers.local import LocalLauncher
from workbench.store import control
from workbench.store.folder import RunFolder, read_json, write_json
from workbench.store.state import RESERVE_BYTES, lock_held, read_state, take_lock, write_state


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "run-a")
    folder.path.mkdir()
    write_state(folder, status="failed", error="the disk is full", exit_code=1)
    return folder


def test_a_new_attempt_starts_clean_and_with_a_reserve_again(folder: RunFolder) -> None:
    request = control.send(folder, "stop")
    lock = begin(folder, attempt=2)
    try:
        state = read_state(folder)
        assert (state.status, state.attempt, state.error, state.exit_code) == ("starting", 2, "", None)
        assert state.pid == os.getpid()
        assert folder.reserve.stat().st_size == RESERVE_BYTES
        answer = control.outcome(folder, request)
        assert answer is not None
        assert answer["done"] is False, "what the earlier attempt was asked is not obeyed by this one"
        with pytest.raises(RunError, match="already being trained"):
            begin(folder)
    finally:
        os.close(lock)


def test_of_several_who_resume_at_once_one_does_and_the_others_are_told(folder: RunFolder) -> None:
    (folder.checkpoints / "step-7").mkdir(parents=True)
    (folder.checkpoints / "step-7" / "manifest.json").write_text("{}")
    barrier = threading.Barrier(3)

    def resume() -> int:
        barrier.wait()
        return begin(folder, attempt=2)

    with ThreadPoolExecutor(3) as pool:
        tries = [pool.submit(resume) for _ in range(3)]
    errors = [str(attempt.exception()) for attempt in tries if attempt.exception()]
    (lock,) = (attempt.result() for attempt in tries if not attempt.exception())
    try:
        assert len(errors) == 2
        assert all("resumed by somebody else a moment ago (attempt 2)" in error for error in errors)
        assert read_state(folder).message == "resuming from the last checkpoint"
    finally:
        os.close(lock)


def test_a_resume_without_a_checkpoint_starts_again_and_nothing_says_otherwise(folder: RunFolder) -> None:
    write_state(folder, step=82, progress=0.19, tokens=999, seconds=3.0, loss=18926.0, heldout_loss=9.0)
    os.close(begin(folder, attempt=2))
    state = read_state(folder)
    assert state.message == "no checkpoint was saved: starting again from step 0"
    assert (state.step, state.progress, state.tokens, state.seconds) == (0, 0.0, 0, 0.0)
    assert (state.loss, state.heldout_loss, state.tokens_per_second) == (None, None, None)


def test_a_resumed_run_stands_at_its_checkpoint(folder: RunFolder) -> None:
    write_json(folder.recipe, {"budget": {"amount": 200, "unit": "steps"}})
    write_json(folder.evaluations, {"heldout": [{"step": 25, "loss": 6.5}, {"step": 75, "loss": 6.0}]})
    for step in (50, 80):
        (folder.checkpoints / f"step-{step}").mkdir(parents=True)
        saved = {"step": step, "tokens": 10 * step, "seconds": step / 10}
        write_json(folder.checkpoints / f"step-{step}" / "state.json", saved)
    write_state(folder, step=82, progress=0.41, loss=18926.0, heldout_loss=6.0, resume_step=50, repeats=True)
    os.close(begin(folder, attempt=2))
    state = read_state(folder)
    assert (state.step, state.tokens, state.seconds, state.progress) == (50, 500, 5.0, 0.25)
    assert (state.loss, state.heldout_loss, state.repeats) == (None, 6.5, False)
    write_state(folder, step=50, loss=4.0)
    os.close(begin(folder, attempt=3))
    assert read_state(folder).loss == 4.0, "it ended there: its loss still holds"


class Noted(LocalLauncher):
    """Starts nothing; notes where it would have."""

    def start(self, folder: RunFolder, descriptors: Mapping[str, int], working_folder: Path, resume: bool) -> int:
        self.seen = working_folder
        return 7


def test_a_resume_starts_where_the_run_was_launched(folder: RunFolder, tmp_path: Path) -> None:
    launcher = Noted()
    for launched in ([], {"on": "local"}, {"folder": 3}, {"folder": "/gone"}):
        write_json(folder.launched, launched)
        launcher.submit(folder, take_lock(folder), resume=True)
        assert launcher.seen == Path.cwd()
    write_json(folder.launched, {"on": "inline", "folder": str(tmp_path), "pid": "x"})
    launcher.submit(folder, take_lock(folder), resume=True)
    assert launcher.seen == tmp_path
    assert read_json(folder.launched)["pid"] == 7


def test_a_working_folder_that_is_gone_leaves_no_run_that_looks_alive(
    folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(RunError, match="could not be started"):
        Noted().submit(folder, take_lock(folder))
    assert (read_state(folder).status, lock_held(folder)) == ("failed", False)


def test_children_import_this_package_and_nothing_of_the_working_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert module_command("a.b", "c") == [sys.executable, "-P", "-m", "a.b", "c"]
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    environment = child_environment(EXTRA="1")
    assert environment["EXTRA"] == "1"
    assert "MPLBACKEND" not in environment, "a trainer draws to files"
    assert environment.items() >= heap_settings(os.environ).items()
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "0")
    assert child_environment()["THP_MEM_ALLOC_ENABLE"] == "0", "what the user has set stands"
    paths = environment["PYTHONPATH"].split(os.pathsep)
    assert paths[-1] == "/elsewhere"
    monkeypatch.setenv("PYTHONPATH", environment["PYTHONPATH"])
    assert child_environment()["PYTHONPATH"] == environment["PYTHONPATH"], "added once, not by every generation"


THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@pytest.mark.skipif(not THP.is_file() or "[never]" in THP.read_text(), reason="this system has no huge pages to give")
@pytest.mark.process
def test_large_tensors_of_a_trainer_lie_in_huge_pages() -> None:
    code = (
        "import re, torch; t = torch.zeros(1 << 24); "
        "print(re.search(r'AnonHugePages: +([0-9]+)', open('/proc/self/smaps_rollup').read())[1])"
    )
    command = [sys.executable, "-c", code]
    # 64 MiB, of which ends need not lie on a boundary; a system short of memory may give fewer.
    found = subprocess.run(command, env=child_environment(), capture_output=True, text=True, check=True).stdout
    assert int(found) >= 32 * 1024


def test_a_run_that_cannot_be_begun_is_not_left_looking_alive(folder: RunFolder) -> None:
    folder.state.unlink()
    folder.state.mkdir()
    with pytest.raises(OSError, match=r"state\.json"):
        begin(folder, attempt=2)
    assert not lock_held(folder)
