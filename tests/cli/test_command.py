"""Wrong requests: one clear message, exit code 2, no traceback, no torch, no waiting."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workbench.cli.command import DELEGATED, main
from workbench.runs.folder import RunFolder
from workbench.runs.state import write_state


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "VERB"),
        (["lanch"], "did you mean 'launch'"),
        (["runs", "--colour"], "unrecognized arguments: --colour"),
        (["runs", "--limit", "-1"], "negative"),
        (["runs", "--limit", "few"], "--limit"),
        (["stop"], "RUN"),
        (["stop", "20260101"], "no run '20260101'"),
        (["watch", "../../etc"], "not of the form"),
        (["stop", "a" * 65], "not of the form"),
        (["export", "x", "out"], "no run 'x'"),
        (["train"], "--preset NAME or --recipe FILE; presets: bert_tiny"),
        (["train", "--preset", "fst"], "did you mean 'fast'"),
        (["train", "--preset", "fast", "--recipe", "x"], "not allowed with"),
        (["launch", "--recipe", "gone.json"], "gone.json"),
        (["launch", "--preset", "fast", "--text", "gone.txt"], "--text: no such file or folder 'gone.txt'"),
        (["forecast", "--run", "x", "--text", "gone.txt"], "leave out what changes it"),
        (["launch", "--preset", "fast", "--set", "seed=" + "1" * 5000], "more digits than any knob takes"),
        (["launch", "--preset", "fast", "--set", "optimizer.lr"], "not PATH=VALUE"),
        (["launch", "--preset", "fast", "--set", "optimizer.rl=1"], "legal: beta1"),
        (["launch", "--preset", "fast", "--set", "optimizer.kind=lanz"], "did you mean 'lans'"),
        (["launch", "--preset", "fast", "--set", "optimizer.lr=-1"], "greater than 0"),
        (["launch", "--preset", "fast", "--set", "architecture.heads=7"], "architecture.heads"),
        (["launch", "--preset", "fast", "--budget", "for ever"], "200 steps"),
        (["launch", "--preset", "fast", "--name", "x" * 100], "name"),
        (["train", "--preset", "fast", "--target-loss", "nan"], "nats"),
        (["choices", "optimiser"], "did you mean 'optimizer'"),
        (["bench", "pears"], "did you mean 'peers'"),
    ],
)
def test_a_wrong_request_is_one_message(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path / "runs"))
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.startswith("error: ")
    assert captured.out == ""
    assert not (tmp_path / "runs").exists()


def test_with_json_an_error_is_one_object(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["stop", "zzz", "--runs", str(tmp_path), "--json"]) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["exit_code"] == 2
    assert json.loads(captured.out)["error"] in captured.err


@pytest.mark.process
def test_runs_answers_fast_and_without_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from workbench.cli import main; code = main(['runs', '--runs', sys.argv[1]]); "
        "print(sorted({'torch', 'numpy', 'transformers', 'plotly', 'pydantic', 'rich', 'asyncio'} & set(sys.modules)))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert said[0].startswith("no runs in")
    assert said[1] == "[]"
    # The best of three: the machine may be busy with something else, the command cannot be faster than it is.
    best = min(_seconds([sys.executable, "-m", "workbench", "runs", "--runs", str(tmp_path)]) for _ in range(3))
    assert best < 0.7


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - began


@pytest.mark.process
def test_a_reader_that_has_enough_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m workbench choices | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout == "data\n"


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    for verb in ("train", "launch", "runs", "watch", "stop", "pause", "resume", "evaluate", "export", *DELEGATED):
        assert f"\n    {verb} " in said


def test_what_the_system_refuses_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = RunFolder(tmp_path / "run-a")
    folder.path.mkdir()
    write_state(folder, status="stopped")
    folder.lock.mkdir()
    assert main(["resume", "run-a", "--runs", str(tmp_path), "--json"]) == 1
    said = capsys.readouterr()
    assert "trainer.lock" in said.err
    assert "Traceback" not in said.err
    assert json.loads(said.out)["exit_code"] == 1
