"""A run begins: one process becomes responsible for it, whatever others try at the same time."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.tiny_runs import tiny_recipe
from workbench.base.errors import RunError
from workbench.launchers.create import begin, create
from workbench.store import control
from workbench.store.folder import RunFolder, write_json
from workbench.store.full_disk import RESERVE_BYTES
from workbench.store.state import lock_held, read_state, write_state


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


def test_a_run_that_cannot_be_begun_is_not_left_looking_alive(folder: RunFolder) -> None:
    folder.state.unlink()
    folder.state.mkdir()
    with pytest.raises(OSError, match=r"state\.json"):
        begin(folder, attempt=2)
    assert not lock_held(folder)


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o755), (0o077, 0o700)])
def test_who_may_read_a_run_is_for_the_umask_to_say(corpus: Path, root: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        folder, lock = create(root, lambda draft: tiny_recipe(corpus))
    finally:
        os.umask(before)
    os.close(lock)
    for path in (folder.path, *folder.path.iterdir()):
        assert path.stat().st_mode & 0o777 & ~mode == 0, path.name
