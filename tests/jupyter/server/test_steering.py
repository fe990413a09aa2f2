"""Steering over real HTTP: answers that are waited for, the lease of two pages, processes that the server starts."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.jupyter.live import run_folder
from tests.jupyter.server.conftest import Client, Server
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.store import control
from workbench.store.folder import RunFolder, write_json
from workbench.store.lease import read_lease
from workbench.store.state import write_state
from workbench.telemetry.streams import read_telemetry

# One server, whose log is looked at in the end, and one run that ended.
pytestmark = pytest.mark.xdist_group("server")


@pytest.fixture
def run(server: Server, request: pytest.FixtureRequest) -> RunFolder:
    """A run that counts as alive."""
    return run_folder(server.runs / f"20260102-000000-{abs(hash(request.node.nodeid)) % 16**8:08x}")


@pytest.fixture(scope="module")
def ended(server: Server, corpus: Path) -> Iterator[Run]:
    """A real run that was stopped, with a checkpoint; whatever goes on from it is stopped in the end."""
    live = launch(tiny_recipe(corpus, steps=200_000), runs_dir=server.elsewhere)
    wait_until(lambda: live.status == "running" and live.state.step > 0)
    live.stop()
    wait_until(lambda: live.status == "stopped")
    yield live
    for folder in live.folder.path.parent.glob("2*"):
        other = Run(RunFolder(folder))
        # Other tests leave runs here that count as alive and are none.
        if other.folder.launched.exists() and other.status in ("starting", "running"):
            other.ask("stop", take_over=True)
            wait_until(lambda other=other: other.status == "stopped")


def test_an_answer_is_waited_for(client: Client, run: RunFolder) -> None:
    path = f"/runs/here/{run.id}/control"
    request = client.post(path, {"verb": "evaluate"}).json["request"]
    began = time.monotonic()
    assert not client.get(f"{path}/{request}", wait=0).json["answered"]
    threading.Timer(0.5, control.answer, (run, request, None, "evaluating")).start()
    accepted = client.get(f"{path}/{request}", wait=10).json
    assert (accepted["answered"], accepted["done"], accepted["text"]) == (True, None, "evaluating")
    threading.Timer(0.5, control.answer, (run, request, True, "held-out loss 5.4")).start()
    done = client.get(f"{path}/{request}", wait=10, said="accepted").json
    assert (done["done"], done["text"]) == (True, "held-out loss 5.4")
    assert time.monotonic() - began < 10, "one of them has waited for as long as it may"
    assert client.get(f"{path}/{request}", wait=11).status == 400


def test_the_end_of_a_run_ends_the_waiting(client: Client, run: RunFolder) -> None:
    path = f"/runs/here/{run.id}/control"
    request = client.post(path, {"verb": "evaluate"}).json["request"]
    threading.Timer(0.3, write_state, (run,), {"status": "failed"}).start()
    began = time.monotonic()
    assert client.get(f"{path}/{request}", wait=10).json["status"] == "failed"
    assert time.monotonic() - began < 10


def test_two_pages_and_one_lease(server: Server, run: RunFolder) -> None:
    ann, bob, path = server.page(), server.page(), f"/runs/here/{run.id}"
    assert ann.post(f"{path}/control", {"verb": "pause", "controller": "ann", "hold": True}).status == 202
    assert read_lease(run).controller == "ann"
    refused = bob.post(f"{path}/control", {"verb": "resume", "controller": "bob", "hold": True})
    assert (refused.status, refused.json["reason"]) == (409, "leased")
    assert bob.post(f"{path}/lease", {"controller": "bob"}).status == 409
    answer = bob.post(f"{path}/lease", {"controller": "bob"}, X_Workbench_Refusals="1")
    assert (answer.status, answer.json["refused"], answer.json["reason"]) == (200, 409, "leased")
    taken = bob.post(f"{path}/lease", {"controller": "bob", "take_over": True})
    assert (taken.status, taken.json["lease"]["controller"]) == (200, "bob")
    told = ann.post(f"{path}/lease", {"controller": "ann"})
    assert (told.status, told.json["reason"]) == (409, "leased")
    (before,) = control.pending(run)
    assert "taken over" in control.refusal(run, before)
    assert bob.post(f"{path}/lease", {"controller": "bob", "release": True}).json == {"lease": None}
    assert ann.post(f"{path}/lease", {"controller": "ann"}).status == 200


@pytest.mark.parametrize("verb", ["lease", "resume", "fork"])
def test_strangers_and_other_sites_start_and_hold_nothing(server: Server, run: RunFolder, verb: str) -> None:
    path, body = f"/runs/here/{run.id}/{verb}", {"controller": "x"} if verb == "lease" else {}
    page = server.page()
    assert server.stranger.post(path, body).status == 403
    forged = Client(server.port, {"Cookie": page.headers["Cookie"]})
    assert forged.post(path, body).status == 403
    assert page.post(path, body, Origin="https://elsewhere.example").status in (403, 404)
    assert not (run.control / "lease.json").exists()
    assert control.pending(run) == []


def test_a_fork_that_makes_no_sense_starts_no_process(server: Server, client: Client, run: RunFolder) -> None:
    children = psutil.Process(server.process.pid).children
    write_json(run.recipe, {"optimizer": {"kind": "adamw", "lr": 0.1}})
    misspelt = {"edits": ["optimizer.lrr=0.2"]}, "did you mean optimizer.lr?"
    for body, said in (
        ({"edits": ["--on"]}, "PATH=VALUE"), ({"step": "3"}, "step"), ({"on": "inline"}, "legal: "), misspelt,
    ):  # fmt: skip
        answer = client.post(f"/runs/here/{run.id}/fork", body)
        assert (answer.status, said in answer.json["message"]) == (400, True)
        assert children() == []


def test_a_run_of_another_machine_is_left_to_its_kernel(client: Client, server: Server) -> None:
    folder = run_folder(server.runs / "20260102-000000-far", status="stopped", alive=False)
    write_state(folder, host="elsewhere.example")
    answer = client.post(f"/runs/here/{folder.id}/resume", {})
    assert answer.status == 409
    assert "elsewhere.example" in answer.json["message"]


@pytest.mark.process
def test_a_fork_without_a_kernel_is_a_run_of_its_own(server: Server, ended: Run) -> None:
    page, path = server.page(), f"/runs/{server.key}/{ended.id}/fork"
    wrong = page.post(path, {"edits": ["architecture.layers=9"]})
    assert wrong.status == 400
    assert "a fork cannot change architecture.layers" in wrong.json["message"]
    step = ended.state.step
    made = page.post(path, {"step": step, "edits": ["optimizer.lr=0.5", "budget=300000 steps", "name=again"]})
    assert made.status == 201, made.body
    told = {"place": server.key, "name": "again", "step": step, "fresh": [], "text": f"again goes on from step {step}"}
    assert made.json | {"run": ""} == {"run": "", **told}
    fork = Run(RunFolder(server.elsewhere / made.json["run"]))
    assert (fork.recipe.optimizer.lr, fork.recipe.budget.amount) == (0.5, 300_000)
    events = read_telemetry(ended.folder.telemetry).events
    assert [(event["data"]["run"], event["step"]) for event in events if event["kind"] == "fork"] == [(fork.id, step)]
    wait_until(lambda: fork.status == "running" and fork.state.step > step)


@pytest.mark.process
def test_a_run_that_ended_goes_on_without_a_kernel(server: Server, ended: Run) -> None:
    # In a Python that only the run's folder names: the server has another.
    python = server.runs.parent / "python"
    if not python.exists():
        python.write_text(f'#!/bin/sh\necho "$OMP_NUM_THREADS $*" >> {python}.log\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
    named = {"python": str(python), "settings": {"OMP_NUM_THREADS": "2"}}
    write_json(ended.folder.launched, {"on": "local", "folder": str(server.elsewhere), **named})
    ended.folder.launched.chmod(0o644)
    page, step = server.page(), ended.state.step
    answer = page.post(f"/runs/{server.key}/{ended.id}/resume", {})
    assert answer.status == 200, answer.body
    assert "attempt 2" in answer.json["text"]
    wait_until(lambda: ended.status == "running" and ended.state.step > step)
    said = Path(f"{python}.log").read_text()
    assert said.startswith(f"2 -P -m workbench resume {ended.id} --runs={server.elsewhere} --json")
    # Not of the server's session: it goes on when the server ends.
    assert os.getsid(ended.state.pid) != os.getsid(server.process.pid)
    again = page.post(f"/runs/{server.key}/{ended.id}/resume", {})
    assert "there is nothing to resume" in str(again.json)


def test_the_log_holds_no_trace_of_errors(server: Server) -> None:
    assert "Traceback" not in server.log.read_text()
