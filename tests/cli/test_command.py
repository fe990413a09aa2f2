"""Wrong requests: one clear message, exit code 2, no traceback, no torch, no waiting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from workbench import __version__
from workbench.cli.command import main
from workbench.cli.verbs import DELEGATED
from workbench.store.folder import RunFolder
from workbench.store.state import write_state


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "VERB"),
        (["lanch"], "did you mean 'launch'"),
        (["runs", "--colour"], "unrecognized arguments: --colour; see `workbench runs --help`"),
        (["set", "x", "optimizer.lr", "3"], "arguments: 3; write optimizer.lr=3; see `workbench set --help`"),
        (["set", "x", "optimizer.lr=3", "4"], "arguments: 4; see `workbench set --help`"),
        (["train", "fast"], "arguments: fast; a preset is named so: --preset fast; see `workbench train --help`"),
        (["queue", "mvoe"], "'move'? legal: cancel, list, move, priority, set, start; see `workbench queue --help`"),
        (["runs", "--limit", "-1"], "negative"),
        (["runs", "--limit", "few"], "--limit: 'few' is not a whole number; see `workbench runs --help`"),
        (["train", "--seed", "abc"], "--seed: 'abc' is not a whole number; legal: 0 to 2,147,483,647; see"),
        (["train", "--priority", "x"], "--priority: 'x' is not a whole number; legal: -1000 to 1000; see"),
        (["train", "--target-loss", "abc"], "--target-loss: 'abc' is not a number; legal: nats, such as 6.5; see"),
        (["runs", "--runs", "/dev/null/none"], "--runs '/dev/null/none' is no folder; the first run"),
        (["runs", "--runs", "/dev/null"], "--runs '/dev/null' is a file, no folder of runs"),
        (["train", "--recipe", "."], "recipe file '.' is a folder; give a file in it: a run's is recipe.json"),
        (["train", "--recipe", "/dev/null"], "recipe file '/dev/null' is empty"),
        (["train", "--recipe", __file__], f"recipe file '{__file__}' is not JSON: Extra data: line 1 column 3"),
        (["train", "--preset", "fast", "--budget", "1.5 steps"], "budget: '1.5 steps' is no whole number of steps"),
        (["stop"], "RUN; see `workbench stop --help`"),
        (["stop", "20260101"], "no run '20260101'"),
        (["watch", "../../etc"], "no run 'etc'"),
        (["stop", "a" * 65], "no run 'aaa"),
        (["stop", ""], "not of the form"),
        (["export", "x", "out"], "no run 'x'"),
        (["compare", "nosuch"], ". `workbench runs` lists them"),
        (["train"], "--preset NAME or --recipe FILE; presets: bert_tiny"),
        (["train", "--preset", "fst"], "did you mean 'fast'"),
        (["train", "--preset", "fast", "--recipe", "x"], "not allowed with"),
        (["launch", "--recipe", "gone.json"], "gone.json"),
        (["launch", "--preset", "fast", "--text", "gone.txt"], "--text: no such file or folder 'gone.txt'"),
        (["forecast", "--run", "x", "--text", "gone.txt"], "leave out what changes it"),
        (["launch", "--preset", "fast", "--set", "seed=" + "1" * 5000], "more digits than any knob takes"),
        (["launch", "--preset", "fast", "--set", "optimizer.lr"], "not PATH=VALUE"),
        (["launch", "--preset", "fast", "--set", "optimizer.rl=1"], "legal: average, beta1"),
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
def test_runs_are_listed_without_the_libraries_that_load_slowly(tmp_path: Path) -> None:
    code = (
        "import sys; from workbench.cli import main; code = main(['runs', '--runs', sys.argv[1]]); "
        "print(sorted({'torch', 'numpy', 'transformers', 'plotly', 'pydantic', 'rich', 'asyncio'} & set(sys.modules)))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert said[0].startswith("no runs in")
    assert said[1] == "[]"


@pytest.mark.extended
@pytest.mark.process
def test_a_reader_that_has_enough_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m workbench choices | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout == "data\n"


@pytest.mark.process
# More than a buffer holds, which fails while it is printed, and less, which fails when all has been.
@pytest.mark.parametrize("arguments", [pytest.param(("choices", "--json"), marks=pytest.mark.extended), ("--version",)])
def test_an_output_that_cannot_be_written_is_one_error(arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "workbench", *arguments]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "error: [Errno 28] No space left on device\n"


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"workbench {__version__}\n"


@pytest.mark.process
def test_a_shell_completes_verbs_and_run_ids(tmp_path: Path) -> None:
    write_state(_folder(tmp_path, "20260101-000000-a-000000-0000"), status="stopped")

    def completed(line: str) -> list[str]:
        asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "|", "COMP_LINE": line, "COMP_POINT": str(len(line)),
                 "WORKBENCH_RUNS": str(tmp_path), "_ARGCOMPLETE_STDOUT_FILENAME": str(tmp_path / "answer")}  # fmt: skip
        subprocess.run([sys.executable, "-m", "workbench"], env=os.environ | asked, check=True)
        return [word.strip() for word in (tmp_path / "answer").read_text().split("|")]

    assert completed("workbench exp") == ["export"]
    assert completed("workbench stop 2026") == ["20260101-000000-a-000000-0000"]


def test_a_run_is_named_by_its_folder_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _folder(tmp_path / "elsewhere", "20260101-000000-a-000000-0000")
    folder.recipe.write_text("{}")
    for name in (str(folder.path), f"{folder.path}/", f"{tmp_path}/x/../elsewhere/{folder.id}"):
        assert main(["log", name, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["run"] == folder.id


def test_names_reach_the_terminal_as_one_printable_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _folder(tmp_path, "20260101-000000-a-000000-0000")
    write_state(folder, status="failed", error="bad \x1b[2J\x07 name")
    folder.recipe.write_text(json.dumps({"name": "a\x1b[31mb\nc"}))
    root = ["--runs", str(tmp_path)]
    main(["runs", *root])
    main(["watch", folder.id, *root])
    main(["note", folder.id, "one\x1b[2J", *root])
    main(["delete", folder.id, "--yes", *root])
    main(["trash", *root])
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert "a [31mb c" in said.out


def _folder(root: Path, run_id: str) -> RunFolder:
    folder = RunFolder(root / run_id)
    folder.path.mkdir(parents=True)
    return folder


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
