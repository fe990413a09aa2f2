"""Steering over real HTTP: who may not ask, and processes that the server starts; answers are in tests/jupyter."""

from __future__ import annotations

import os
import sys
import uuid
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
from workbench.store.state import write_state
from workbench.telemetry.streams import read_telemetry

# One server, whose log is looked at in the end, and one run that ended.
pytestmark = pytest.mark.xdist_group("server")


@pytest.fixture
def run(server: Server) -> RunFolder:
    """A run that counts as alive."""
    return run_folder(server.runs / f"20260102-000000-{uuid.uuid4().hex[:8]}")


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


@pytest.mark.parametrize("verb", ["lease", "restart", "fork"])
def test_strangers_and_other_sites_start_and_hold_nothing(server: Server, run: RunFolder, verb: str) -> None:
    path, body = f"/runs/here/{run.id}/steer", {"verb": verb} | ({"controller": "x"} if verb == "lease" else {})
    page = server.page()
    assert server.stranger.post(path, body).status == 403
    forged = Client(server.port, {"Cookie": page.headers["Cookie"]})
    assert forged.post(path, body).status == 403
    assert page.post(path, body, Origin="https://elsewhere.example").status in (403, 404)
    assert not (run.control / "lease.json").exists()
    assert control.pending(run) == []


def test_a_misspelt_fork_starts_no_process(server: Server, client: Client, run: RunFolder) -> None:
    children = psutil.Process(server.process.pid).children
    before = {*children()}  # what answers questions about runs stays beside the server
    write_json(run.recipe, {"optimizer": {"kind": "adamw", "lr": 0.1}})
    answer = client.post(f"/runs/here/{run.id}/steer", {"verb": "fork", "edits": ["optimizer.lrr=0.2"]})
    assert (answer.json["state"], "did you mean optimizer.lr?" in answer.json["text"]) == ("refused", True)
    assert {*children()} <= before


def test_what_a_kernel_alone_can_do_is_left_to_it(client: Client, server: Server, run: RunFolder) -> None:
    folder = run_folder(server.runs / "20260102-000000-far", status="stopped", alive=False)
    write_state(folder, host="elsewhere.example")
    answer = client.post(f"/runs/here/{folder.id}/steer", {"verb": "restart"}).json
    assert answer["state"] == "failed"
    assert "elsewhere.example" in answer["text"]
    assert client.post(f"/runs/here/{run.id}/steer", {"verb": "try_fork"}).json["state"] == "failed"


@pytest.mark.process
def test_a_fork_without_a_kernel_is_a_run_of_its_own(server: Server, ended: Run) -> None:
    page, path = server.page(), f"/runs/{server.key}/{ended.id}/steer"
    wrong = page.post(path, {"verb": "fork", "edits": ["architecture.layers=9"]}).json
    assert (wrong["state"], "a fork cannot change architecture.layers" in wrong["text"]) == ("refused", True)
    step, edits = ended.state.step, ["optimizer.lr=0.5", "budget=300000 steps", "name=again"]
    answer = page.post(path, {"verb": "fork", "step": step, "edits": edits}).json
    assert (answer["state"], answer["text"]) == ("done", f"again goes on from step {step}"), answer
    made = answer["made"]
    assert made | {"run": ""} == {"run": "", "name": "again", "step": step, "fresh": []}
    fork = Run(RunFolder(server.elsewhere / made["run"]))
    assert (fork.recipe.optimizer.lr, fork.recipe.budget.amount) == (0.5, 300_000)
    events = read_telemetry(ended.folder.telemetry).events
    assert [(event["data"]["run"], event["step"]) for event in events if event["kind"] == "fork"] == [(fork.id, step)]
    wait_until(lambda: fork.status == "running" and fork.state.step > step)


@pytest.mark.extended
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
    page, step, path = server.page(), ended.state.step, f"/runs/{server.key}/{ended.id}/steer"
    answer = page.post(path, {"verb": "restart"}).json
    assert (answer["state"], "attempt 2" in answer["text"]) == ("done", True), answer
    wait_until(lambda: ended.status == "running" and ended.state.step > step)
    said = Path(f"{python}.log").read_text()
    assert said.startswith(f"2 -P -m workbench resume {ended.id} --runs={server.elsewhere} --json")
    # Not of the server's session: it goes on when the server ends.
    assert os.getsid(ended.state.pid) != os.getsid(server.process.pid)
    assert "there is nothing to resume" in page.post(path, {"verb": "restart"}).json["text"]


def test_the_log_holds_no_trace_of_errors(server: Server) -> None:
    assert "Traceback" not in server.log.read_text()
