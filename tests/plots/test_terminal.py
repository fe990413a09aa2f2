"""Following a run in the terminal, with and without somebody looking."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from rich.console import Console

from workbench.cli.command import main
from workbench.client.run import Run
from workbench.plots import terminal
from workbench.store.folder import RunFolder, write_json
from workbench.store.measured import progress_parts
from workbench.store.state import RunState, take_lock, write_state


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "20260101-000000-a-000000-0000")
    folder.path.mkdir()
    write_json(folder.recipe, {"name": "[red]mine[/red]"})
    write_state(folder, status="running", step=1, loss=3.25, message="compiling [4] blocks")
    return folder


def finish(folder: RunFolder) -> None:
    floors = {"score": {"kind": "next-token", "version": 2}, "unigram_entropy": 6.0, "bigram_entropy": 4.0}
    write_json(folder.evaluations, {**floors, "result": {"steps": 9, "heldout_loss": 2.0}})
    write_state(folder, status="finished", step=9, progress=1.0, heldout_loss=2.0, message="")


def test_lines_where_nobody_looks(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    lock = take_lock(folder)
    timer = threading.Timer(0.6, finish, args=(folder,))
    timer.start()
    assert main(["watch", folder.id, "--runs", str(folder.path.parent), "--json"]) == 0
    timer.join()
    os.close(lock)
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert len(lines) == 2
    assert "compiling [4] blocks" in lines[0]
    assert "held-out 2.000" in lines[1]
    said = {"run": folder.id, "state": "finished", "steps": 9, "heldout_loss": 2.0, "learned": "context"}
    assert said.items() <= json.loads(captured.out).items()


def test_a_failed_run_exits_with_1(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    write_state(folder, status="failed", error="the loss became NaN")
    assert main(["watch", folder.id, "--runs", str(folder.path.parent)]) == 1
    assert "error: " in capsys.readouterr().err


@pytest.mark.process
def test_a_bar_where_somebody_looks(folder: RunFolder) -> None:
    finish(folder)
    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-m", "workbench", "watch", folder.id, "--runs", str(folder.path.parent)],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "160"},
    )
    os.close(theirs)
    out, _ = done.communicate(timeout=60)
    drawn = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert done.returncode == 0
    assert "100%" in drawn
    assert "held-out 2.000" in drawn
    assert re.search(r"; uses context: \d\.\d\d nats below neighbour counts\n", out)


def test_a_bar_follows_the_name_of_its_run(folder: RunFolder) -> None:
    other = RunFolder(folder.path.parent / "other")
    other.path.mkdir()
    lock, drawn = take_lock(folder), io.StringIO()
    threading.Timer(0.5, setattr, args=(Run(folder), "name", "renamed")).start()
    threading.Timer(1.0, finish, args=(folder,)).start()
    finish(other)
    terminal.follow(Run(folder), Run(other), console=Console(file=drawn, force_terminal=True, width=120))
    os.close(lock)
    assert "[red]mine[/red] running" in drawn.getvalue()
    assert "renamed finished" in drawn.getvalue()


def test_words_leave_out_what_is_not_known() -> None:
    assert progress_parts(asdict(RunState(status="running"))) == ["step 0"]
    state = RunState(
        status="running", step=1200, loss=2.5, heldout_loss=2.25, tokens_per_second=12_345.0, message="evaluating"
    )
    said = ["step 1,200", "loss 2.500", "held-out ~2.250", "12,345 tokens/s (last 10 s)", "evaluating"]
    assert progress_parts(asdict(state)) == said
    ended = progress_parts(asdict(replace(state, status="finished")))
    assert {"held-out 2.250", "12,345 tokens/s (mean)"} < set(ended), "of all tokens and all of its training"


def test_a_line_is_printed_when_what_it_says_has_changed(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "LINE_SECONDS", 0.0)
    lock = take_lock(folder)
    for seconds, step in ((0.5, 2), (1.0, 2), (1.5, 9)):
        threading.Timer(seconds, write_state, args=(folder,), kwargs={"step": step}).start()
    timer = threading.Timer(2.0, finish, args=(folder,))
    timer.start()
    assert main(["watch", folder.id, "--runs", str(folder.path.parent), "--json"]) == 0
    timer.join()
    os.close(lock)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("step ")[1].split()[0] for line in lines] == ["1", "2", "9", "9"]
