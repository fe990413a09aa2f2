"""``workbench watch out.ipynb``: a real papermill and its run, followed while the cell runs; notebooks without runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from tests.tiny_runs import tiny_recipe
from workbench.cli import headless
from workbench.cli.command import main


def notebook(path: Path, *outputs: str, papermill: dict[str, object] | None = None) -> Path:
    """A notebook with printed lines."""
    cells = [nbformat.v4.new_code_cell("1", outputs=[nbformat.v4.new_output("stream", text=text)]) for text in outputs]
    metadata = {} if papermill is None else {"papermill": papermill}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), path)
    return path


def test_a_notebook_without_runs_gets_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = "20260101-000000-other-000000-0000\n"
    path = notebook(tmp_path / "out.ipynb", "no run", other, papermill={"start_time": "t", "end_time": "t"})
    assert main(["watch", str(path), "--runs", str(tmp_path / "runs")]) == 2
    error = capsys.readouterr().err
    assert f"has ended and names no run of {tmp_path / 'runs'}" in error
    assert len(error.splitlines()) == 1
    assert main(["watch", str(tmp_path / "none.ipynb")]) == 2
    assert "there is no notebook" in capsys.readouterr().err
    (tmp_path / "half.ipynb").write_text('{"cells": [')
    assert main(["watch", str(tmp_path / "half.ipynb")]) == 2
    assert "is no notebook" in capsys.readouterr().err


def test_papermill_tells_its_end_and_the_runs_folder(tmp_path: Path) -> None:
    going = {"start_time": "t", "end_time": None, "parameters": {"runs_dir": "elsewhere"}}
    found = headless.look(notebook(tmp_path / "out.ipynb", "1", papermill=going))
    assert not found.ended
    assert found.root == tmp_path / "elsewhere", "beside the notebook, if it is not here"
    assert headless.look(notebook(tmp_path / "plain.ipynb", "1")).ended, "papermill never executed it"


@pytest.mark.extended
@pytest.mark.process
def test_a_run_is_followed_while_papermill_is_in_its_cell(corpus: Path, root: Path, tmp_path: Path) -> None:
    saved = tiny_recipe(corpus, 20_000, "headless").save(tmp_path / "recipe.json")
    cells = [
        "import workbench as wb",
        f"run = wb.launch(wb.Recipe.load({str(saved)!r}), runs_dir={str(root)!r}); print(run.id)",
        "print(run.wait())",
    ]
    source, out = tmp_path / "source.ipynb", tmp_path / "out.ipynb"
    specification = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    made = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, cells)), metadata=specification)
    nbformat.write(made, source)
    execution = subprocess.Popen([sys.executable, "-m", "papermill", str(source), str(out)], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    try:
        while time.monotonic() < deadline and not (out.exists() and b"-headless-" in out.read_bytes()):
            time.sleep(0.2)
        found = headless.look(out, str(root))
        assert [run.name for run in found.runs] == ["headless"]
        assert not found.ended, "the cell that waits has not ended"
        command = [sys.executable, "-m", "workbench", "watch", str(out), "--runs", str(root), "--json"]
        watching = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
        time.sleep(5)
        assert watching.poll() is None
        found.runs[0].stop()
        said, log = watching.communicate(timeout=90)
    finally:
        execution.terminate() if time.monotonic() > deadline else execution.wait(60)
    assert watching.returncode == 0
    assert "-headless-" in log
    answer = json.loads(said)
    assert answer["ended"]
    assert [run["state"] for run in answer["runs"]] == ["stopped"]
