"""Listing and steering through the command line, against the same folders as everybody else."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from workbench.cli.command import main
from workbench.client import run as run_of_workbench
from workbench.recipes.changes import settable
from workbench.recipes.recipe import Recipe
from workbench.store import control, lease
from workbench.store.folder import RunFolder, write_json
from workbench.store.state import take_lock, write_state
from workbench.telemetry.streams import TelemetryWriter


@pytest.fixture
def alive(tmp_path: Path) -> Iterator[RunFolder]:
    """A running run, whose trainer is this process."""
    folder = RunFolder(tmp_path / "20260101-000000-a-000000-0000")
    folder.path.mkdir()
    write_json(folder.recipe, {"name": "mine"})
    write_state(folder, status="running", step=12, loss=2.5, progress=0.5)
    lock = take_lock(folder)
    yield folder
    os.close(lock)


def trainer(folder: RunFolder, done: bool, text: str) -> threading.Thread:
    """Answers the first request."""

    def answer() -> None:
        deadline = time.monotonic() + 10
        while not (requests := control.pending(folder)) and time.monotonic() < deadline:
            time.sleep(0.01)
        control.answer(folder, requests[0].id, done, text)

    thread = threading.Thread(target=answer)
    thread.start()
    return thread


def test_runs_as_table_and_as_json(alive: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    ended = RunFolder(alive.path.with_name("20250101-000000-b-000000-0000"))
    ended.path.mkdir()
    write_state(ended, status="failed", error="because")
    root = str(alive.path.parent)
    assert main(["runs", "--runs", root]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1].split() == [alive.id, "mine", "running", "50%", "12", "2.500"]
    assert len(said) == 3
    assert main(["runs", "--runs", root, "--limit", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "... and 1 older"
    assert main(["runs", "--runs", root, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["count"] == 2
    assert [(run["run"], run["status"]) for run in found["runs"]] == [(alive.id, "running"), (ended.id, "failed")]
    assert found["runs"][1]["error"] == "because"


def test_a_request_waits_for_its_answer(alive: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    root = str(alive.path.parent)
    thread = trainer(alive, True, "pausing after this step")
    assert main(["pause", alive.id, "--runs", root, "--json"]) == 0
    thread.join()
    said = json.loads(capsys.readouterr().out)
    assert said == {"run": alive.id, "state": "running", "request": "pause", "answered": True, "text": said["text"]}
    assert said["text"] == "pausing after this step"
    thread = trainer(alive, False, "not now")
    assert main(["evaluate", alive.id, "--runs", root]) == 2
    thread.join()
    assert "not now" in capsys.readouterr().err
    assert main(["set", alive.id, "a.b", "--runs", root]) == 2
    assert "PATH=VALUE" in capsys.readouterr().err


def test_what_the_run_has_begun_is_told_beside_the_answer(
    alive: RunFolder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    send = control.send

    def taken_up(*arguments: Any, **named: Any) -> str:
        request = send(*arguments, **named)
        control.answer(alive, request, None, "evaluating on held-out tokens, about 12 s")
        # Later than the patience of the command, which is for the run to begin.
        threading.Timer(0.3, control.answer, (alive, request, True, "held-out loss 5.4")).start()
        return request

    monkeypatch.setattr(control, "send", taken_up)
    assert main(["evaluate", alive.id, "--runs", str(alive.path.parent), "--timeout", "0.1"]) == 0
    said = capsys.readouterr()
    assert said.out == "held-out loss 5.4\n"
    assert said.err == "evaluating on held-out tokens, about 12 s ...\n"


def test_an_answer_that_does_not_come_is_a_failure(alive: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    asking = ["set", alive.id, "optimizer.lr=1e-3", "--runs", str(alive.path.parent), "--timeout", "0.1"]
    assert main(asking) == 1
    assert "has not answered 'set' within 0.1 s; the request stands" in capsys.readouterr().err
    (request,) = control.pending(alive)
    assert request.arguments == {"path": "optimizer.lr", "value": 1e-3}
    assert main([*asking, "--json"]) == 1
    said = capsys.readouterr()
    assert "the request stands" in said.err
    found = json.loads(said.out)
    assert (found["run"], found["request"], found["answered"]) == (alive.id, "set", False)


def test_a_knob_is_checked_before_it_is_sent(alive: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    asking = ["set", alive.id, "--runs", str(alive.path.parent), "--timeout", "0"]
    control.write_knobs(alive, settable(Recipe(optimizer={"kind": "adamw", "schedule": "inverse_sqrt"})))
    for text, why in (
        ("optimizer.lx=1", "did you mean 'optimizer.lr'"),
        ("optimizer.lr=-1", "greater than 0"),
        ("optimizer.schedule.end=5", "optimizer.schedule.end"),
    ):
        assert main([*asking, text]) == 2
        assert why in capsys.readouterr().err
    assert control.pending(alive) == []
    # Of the schedule in force, which the run was not launched with.
    assert main([*asking, "optimizer.schedule.warmup=0.2"]) == 1
    assert len(control.pending(alive)) == 1


def test_a_run_that_ended_is_not_asked(alive: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    write_state(alive, status="finished")
    assert main(["stop", alive.id, "--runs", str(alive.path.parent)]) == 2
    assert "it is finished" in capsys.readouterr().err
    assert main(["evaluate", alive.id, "--runs", str(alive.path.parent)]) == 2
    assert "it is finished; `workbench runs` lists the score at its end" in capsys.readouterr().err
    assert main(["profile", alive.id, "--runs", str(alive.path.parent)]) == 2
    assert "it is finished; it was not profiled; `workbench train --profile` profiles" in capsys.readouterr().err
    assert main(["resume", alive.id, "--runs", str(alive.path.parent)]) == 2
    assert "budget is spent" in capsys.readouterr().err


def test_the_log(alive: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    alive.log.write_text("one\ntwo\nthree\n")
    assert main(["log", alive.id[:12], "--runs", str(alive.path.parent), "--lines", "2"]) == 0
    assert capsys.readouterr().out == "two\nthree\n"
    writer = TelemetryWriter(alive.telemetry)
    for step, kind, text in ((0, "start", "on a CPU"), (7, "checkpoint", "saved"), (9, "warning", "slow\x1b[2J disk")):
        writer.event(step, kind, text)
    writer.close()
    assert main(["log", alive.id, "--runs", str(alive.path.parent), "--lines", "2"]) == 0
    first, second, *rest = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC  step 7  checkpoint  saved", first)
    assert second.endswith("UTC  step 9  warning     slow [2J disk")
    assert rest == ["its process printed:", "two", "three"]
    assert main(["log", alive.id, "--runs", str(alive.path.parent), "--json"]) == 0
    assert [event["step"] for event in json.loads(capsys.readouterr().out)["events"]] == [0, 7, 9]
    assert main(["log", alive.id, "--runs", str(alive.path.parent), "--lines", "0"]) == 2
    assert "--lines 0 shows nothing" in capsys.readouterr().err


def test_the_log_of_a_lost_run_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = RunFolder(tmp_path / "20260101-000000-a-000000-0000")
    folder.path.mkdir()
    write_state(folder, status="running", step=3, heartbeat=1767323045.0)
    assert main(["log", folder.id, "--runs", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("2026-01-02 03:04:05 UTC  step 3  error  attempt 1 was lost at step 3: all of its processes")


def test_somebody_elses_run_takes_a_take_over(alive: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    lease.claim(alive, "page", "Ann's page")
    root = str(alive.path.parent)
    assert main(["stop", alive.id, "--runs", root]) == 2
    assert "steered by Ann's page" in capsys.readouterr().err
    assert control.pending(alive) == []
    thread = trainer(alive, True, "stopping after this step")
    assert main(["stop", alive.id, "--runs", root, "--take-over"]) == 0
    thread.join()
    assert not lease.read_lease(alive).held()


@pytest.mark.parametrize(("model_type", "told"), [("workbench", True), ("bert", False)])
def test_an_export_that_needs_an_import_says_so(
    alive: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    model_type: str, told: bool,
) -> None:  # fmt: skip
    def exported(_folder: RunFolder, _module: str, _run: str, target: str) -> None:
        Path(target).mkdir()
        write_json(Path(target) / "config.json", {"model_type": model_type})

    monkeypatch.setattr(run_of_workbench, "run_module", exported)
    assert main(["export", alive.id, str(tmp_path / "model"), "--runs", str(alive.path.parent)]) == 0
    assert ("`import workbench.transformers`" in capsys.readouterr().out) == told
