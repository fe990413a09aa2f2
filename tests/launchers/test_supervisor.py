"""Real trainers, killed in every way: the run says what happened, leaves no orphan, has never two, and goes on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.run_folders import processes_of, write_records
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.base.errors import RunError, RunFailed
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.launchers import supervisor
from workbench.launchers.create import begin
from workbench.launchers.processes import module_command
from workbench.launchers.supervisor import _record_end
from workbench.launchers.trainers import why_ended
from workbench.store.folder import RunFolder
from workbench.store.state import actual_status, read_state, write_state
from workbench.telemetry.streams import read_events

START_SECONDS = 90.0


@pytest.mark.process
def test_the_log_holds_the_path_of_the_report_once(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # Any module will do; the report itself takes seconds.
    monkeypatch.setattr("workbench.launchers.report.REPORT", "platform")
    supervisor._report(folder)
    first = capfd.readouterr()
    assert first.out == f"{folder.report}\n"
    folder.report.write_text("of an earlier attempt")
    supervisor._report(folder)
    again = capfd.readouterr()
    assert (again.out, again.err) == ("", "")


def launched_and_paused(corpus: Path, root: Path, steps: int) -> Run:
    """A run that stands still somewhere in the middle, its checkpoint written."""
    run = launch(tiny_recipe(corpus, steps), runs_dir=root)
    wait_until(lambda: run.state.step >= 1 or run.status in ("failed", "lost"), START_SECONDS, "the first step")
    assert run.status == "running", run.state
    run.pause(timeout=30)
    wait_until(lambda: run.status == "paused", 30, "the pause")
    return run


def trainers(root: Path) -> list[psutil.Process]:
    return processes_of(root, "workbench.training.worker")


def supervisors(root: Path) -> list[psutil.Process]:
    return processes_of(root, "workbench.launchers.supervisor")


@pytest.mark.process
def test_a_killed_trainer_is_told_and_resumed(corpus: Path, root: Path) -> None:
    run = launched_and_paused(corpus, root, steps=150)
    (trainer,) = trainers(root)
    assert trainer.pid == run.state.pid
    paused_at = run.state.step
    trainer.send_signal(signal.SIGKILL)
    with pytest.raises(RunFailed, match=re.escape("was killed (signal 9, SIGKILL)")) as caught:
        run.wait(timeout=30)
    assert "out-of-memory" in str(caught.value)
    assert f"workbench resume {run.id}" in str(caught.value)
    assert run.status == "failed"
    assert run.state.exit_code == -9
    with pytest.raises(RunError, match=r"cannot stop: it is failed; `workbench resume"):
        run.stop()

    assert "attempt 2" in run.resume()
    assert run.status in ("starting", "running")
    ended, begun = (event["text"] for event in read_events(run.folder.telemetry)[-2:])
    assert ended.startswith(f"attempt 1 ended at step {paused_at}: the trainer was killed (signal 9, SIGKILL)")
    assert begun == "attempt 2 begins; resuming from the last checkpoint"
    result = run.wait(timeout=START_SECONDS)
    assert isinstance(result, dict)
    assert (result["state"], result["steps"]) == ("finished", 150)
    assert (run.state.attempt, run.state.error) == (2, "")
    # Every step exactly once: what the first attempt said beyond its checkpoint is forgotten.
    assert run.telemetry().series("loss")[0] == list(range(1, 151))
    assert paused_at < 150, "the run was over before it was killed, so nothing was tested"
    with pytest.raises(RunError, match="is finished"):
        run.resume()

    assert os.environ["WORKBENCH_REPORT"] == "off"
    wait_until(lambda: not processes_of(root), 30, "the supervisor's end")
    assert not run.folder.report.exists()


@pytest.mark.process
def test_a_killed_supervisor_leaves_no_orphan(corpus: Path, root: Path) -> None:
    run = launched_and_paused(corpus, root, steps=100_000)
    with pytest.raises(RunError, match="already being trained"):
        begin(run.folder)
    by_hand = subprocess.run(
        module_command("workbench.launchers.supervisor", str(run.folder.path)), capture_output=True, text=True
    )
    assert by_hand.returncode == 2
    assert "already being trained" in by_hand.stderr
    assert (len(trainers(root)), run.status) == (1, "paused")

    (supervisor,) = supervisors(root)
    supervisor.send_signal(signal.SIGKILL)
    wait_until(lambda: not trainers(root), what="the trainer's end")
    wait_until(lambda: run.status == "lost", what="the loss")
    assert read_state(run.folder).status == "paused"
    with pytest.raises(RunFailed, match="is lost"):
        run.wait(timeout=30)

    run.resume()
    wait_until(lambda: run.status in ("running", "failed", "lost"), START_SECONDS, "the second attempt")
    with pytest.raises(RunError, match="there is nothing to resume"):
        run.resume(timeout=30)
    assert len(trainers(root)) == 1
    # A service manager ends the supervisor politely: the run is stopped, with a checkpoint.
    before = set(run.folder.checkpoints.iterdir())
    supervisors(root)[0].send_signal(signal.SIGTERM)
    result = run.wait(timeout=60)
    assert isinstance(result, dict)
    assert (result["state"], result["stopped_early"]) == ("stopped", True)
    assert set(run.folder.checkpoints.iterdir()) != before


@pytest.mark.process
def test_what_the_trainer_says_about_its_failure_stays(corpus: Path, root: Path, tmp_path: Path) -> None:
    text = tmp_path / "fieldless.jsonl"
    text.write_text('{"text": "there"}\n{"other": "text"}\n')
    run = launch(tiny_recipe(text), runs_dir=root)
    with pytest.raises(RunFailed, match="fieldless") as caught:
        run.wait(timeout=START_SECONDS)
    assert "Traceback" not in str(caught.value)
    assert run.state.exit_code == 1


@pytest.mark.process
def test_a_trainer_that_cannot_start_is_a_failed_run(folder: RunFolder) -> None:
    # No recipe.json at all: the real trainer refuses, the supervisor writes it down.
    done = subprocess.run(
        module_command("workbench.launchers.supervisor", str(folder.path)), capture_output=True, text=True
    )
    assert done.returncode == 1
    assert actual_status(folder) == "failed"
    assert "recipe" in read_state(folder).error


@pytest.mark.parametrize(
    ("code", "out_of_memory", "said"),
    [
        (-9, True, "memory ran out"),
        (-9, False, "most often the out-of-memory killer"),
        (-11, False, "signal 11, SIGSEGV"),
        (-62, False, "signal 62"),
        (3, False, "exit code 3"),
    ],
)
def test_every_end_has_words(code: int, out_of_memory: bool, said: str) -> None:
    assert said in why_ended(code, out_of_memory, True)


@pytest.mark.parametrize("repeats", [True, False])
def test_only_what_would_not_repeat_is_told_to_be_resumed(tmp_path: Path, repeats: bool) -> None:
    folder = RunFolder(tmp_path / "run-a")
    folder.path.mkdir()
    write_state(folder, status="running")
    with folder.lock.open("w") as lock:
        _record_end(folder, lock.fileno(), -9, why_ended(-9, repeats, True), repeats=repeats)
    state = read_state(folder)
    assert (state.status, state.repeats) == ("failed", repeats)
    assert ("workbench resume" in state.error) != repeats


@pytest.mark.parametrize("saved", [True, False])
def test_a_killed_trainer_leaves_its_last_step_and_what_a_resume_will_do(folder: RunFolder, saved: bool) -> None:
    write_state(folder, status="running", step=265, tokens=265 * 512, seconds=50.0, loss=3.0, attempt=2)
    write_records(folder, step=270)
    if saved:
        (folder.checkpoints / "step-200").mkdir(parents=True)
        (folder.checkpoints / "step-200" / "manifest.json").touch()
    with folder.lock.open("w") as lock:
        _record_end(folder, lock.fileno(), -9, why_ended(-9, False, saved))
    state = read_state(folder)
    assert (state.status, state.step, state.tokens) == ("failed", 270, 270 * 512)
    does = f"`workbench resume {folder.id}` goes on from its last checkpoint." if saved else (
        f"It left no checkpoint: `workbench resume {folder.id}` starts its recipe from the beginning."
    )  # fmt: skip
    assert state.error.endswith(f"{', or fork with it' * saved}. {does}")
    assert ("fork" in state.error) == saved
    (event,) = read_events(folder.telemetry)
    assert (event["step"], event["kind"]) == (270, "error")
    assert event["text"] == f"attempt 2 ended at step 270: {state.error}"


@pytest.mark.process
def test_the_supervisor_is_light() -> None:
    code = (
        "import workbench.launchers.supervisor, sys; "
        "print(sorted({'torch', 'numpy', 'pydantic', 'rich', 'asyncio', 'transformers'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"
