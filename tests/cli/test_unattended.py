"""A full or read-only disk under a foreground run: where nobody can help, it ends instead of waiting for ever."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import SmallDisk
from tests.documents import ROOT
from tests.run_folders import processes_of, root  # noqa: F401  (the same fixture as for runs)
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.base.errors import FREE_SPACE
from workbench.cli import unattended
from workbench.cli.command import main
from workbench.cli.unattended import WaitForSpace, somebody_there
from workbench.client.run import Run
from workbench.store.folder import RunFolder
from workbench.store.state import write_state


@pytest.mark.process
def test_a_disk_too_small_for_a_checkpoint_ends_the_command(
    corpus: Path,
    small_disk: Callable[[str], SmallDisk],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unattended, "SPACE_SECONDS", 1.0)
    disk = small_disk("1200k")
    recipe = tiny_recipe(corpus).with_(architecture={"width": 128}).save(tmp_path / "recipe.json")
    assert main(["train", "--recipe", str(recipe), "--runs", str(disk.path), "--json"]) == 1
    said = capsys.readouterr()
    answer = json.loads(said.out)
    assert (answer["state"], answer["steps"]) == ("stopped", 30)
    for part in ("waited 1 s for space", "ended at step 30", "a checkpoint needs", answer["run"], "workbench resume"):
        assert part in answer["error"]
    assert f"error: {answer['error']}" in said.err
    assert processes_of(disk.path) == []
    assert Run(answer["run"], disk.path).view().state["status"] == "stopped"


AS_ANYBODY = """import sys
from tests.faults.test_faults import as_anybody
from workbench.cli import unattended
from workbench.cli.command import main
as_anybody()
unattended.SPACE_SECONDS = 1.0
sys.exit(main(sys.argv[1:]))"""


@pytest.mark.process
def test_a_folder_that_becomes_read_only_ends_the_command(corpus: Path, tmp_path: Path) -> None:
    """Nothing can be written there: neither that the run has paused, nor that it is to stop."""
    recipe = tiny_recipe(corpus).with_(budget={"amount": 10**6, "unit": "steps", "checkpoint_seconds": 0.2})
    saved, runs = recipe.save(tmp_path / "recipe.json"), tmp_path / "runs"
    command = [sys.executable, "-c", AS_ANYBODY, "train", "--recipe", str(saved), "--runs", str(runs), "--json"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: any(path.suffix != ".tmp" for path in runs.glob("*/checkpoints/step-*")), what="a checkpoint")
    (path,) = (folder.parent for folder in runs.glob("*/checkpoints"))
    folders = [path, *(each for each in path.iterdir() if each.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        out, error = process.communicate(timeout=60)
        assert process.returncode == 1
        answer = json.loads(out)["error"]
        for part in ("waited 1 s", "its folder cannot be written to", FREE_SPACE, "workbench resume"):
            assert part in answer
        assert f"error: {answer}" in error
        wait_until(lambda: processes_of(runs) == [], what="the end of the run with its command")
    finally:
        for folder in folders:
            folder.chmod(0o755)
    run = Run(path.name, runs)
    assert run.status in ("failed", "lost"), "its supervisor may see the command's end once it can write"
    assert run.telemetry().series("loss")[0], "what it has recorded is kept"


def test_only_a_full_disk_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(unattended.time, "monotonic", lambda: now[0])
    folder = RunFolder(tmp_path / "r1")
    folder.path.mkdir()
    waiting = WaitForSpace(Run(folder))

    def over(status: str, message: str, seconds: float) -> bool:
        write_state(folder, status=status, message=message)
        now[0] += seconds
        return waiting.over()

    assert not over("paused", "paused on request; it keeps its turn on this machine", 999)
    assert not over("paused", f"no room; {FREE_SPACE}", 999)
    assert not over("paused", f"no room; {FREE_SPACE}", 59)
    assert not over("running", "", 59), "somebody has freed space"
    assert not over("paused", f"no room; {FREE_SPACE}", 59)
    assert waiting.message == ""
    assert over("paused", f"no room; {FREE_SPACE}", 61)
    assert waiting.message == f"no room; {FREE_SPACE}"


@pytest.mark.parametrize("terminal", [True, False])
def test_somebody_is_there_at_a_terminal_that_is_not_read_by_a_program(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: terminal)
    assert somebody_there(as_json=False) is terminal
    assert not somebody_there(as_json=True)
