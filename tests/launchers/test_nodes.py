"""Nodes of one run meet, or the one at fault is named; here all of them are processes, or threads, of this machine."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.run_folders import processes_of
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.base.errors import RunError, RunFailed
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.client.summary import summary
from workbench.launchers import node, nodes
from workbench.launchers.fork_server import TRAINER
from workbench.launchers.nodes import Nodes, NodesError
from workbench.launchers.processes import child_environment, module_command
from workbench.store.folder import RunFolder
from workbench.store.state import boot_id, read_state, write_state


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def run(corpus: Path, root: Path) -> Run:
    return made(corpus, root)


def made(corpus: Path, root: Path) -> Run:
    """Return a run whose nodes nobody has started yet."""
    said: list[str] = []
    run = launch(tiny_recipe(corpus, 1_000_000), on="hand:nodes=2", runs_dir=root, say=said.append)
    assert f"-m {node.__name__} {run.folder.path} --nodes=2 --processes=1" in said[0]
    assert (run.status, summary(run.folder)["where"]) == ("queued", "nodes started by hand")
    return run


@pytest.fixture
def other(port: int) -> Iterator[Future[int]]:
    """The second of two nodes, in a thread; its lost folder is that of the first, as it is told."""
    with ThreadPoolExecutor() as pool:
        yield pool.submit(node._take_part, RunFolder(Path("/nowhere")), 1, ("127.0.0.1", port), "key")


def gathered(run: Run, port: int, **given: object) -> str:
    (run.folder.control).mkdir(exist_ok=True)
    return Nodes(2, host="127.0.0.1", port=port, key="key", **given).gather(  # type: ignore[arg-type]
        run.folder, lambda: "", lambda text: None
    )


def test_a_node_whose_disk_is_another_is_named(
    run: Run, port: int, other: Future[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "_sees", lambda proof, beat: False)
    with pytest.raises(NodesError, match=r"node 1 \(.*\) does not see what .* on a disk that all nodes share"):
        gathered(run, port)
    assert list(run.folder.control.iterdir()) == []


def test_a_file_counts_as_seen_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "SHARED_SECONDS", 0.1)
    assert not node._sees(tmp_path / "a", list)
    assert not node._sees(tmp_path / "none" / "a", list)
    (tmp_path / "a").touch()
    assert node._sees(tmp_path / "a", list)


def test_a_node_of_other_software_is_named_on_both_sides(
    run: Run, port: int, other: Future[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = nodes.software()
    assert {"Python", "torch", "workbench"} <= set(found)
    monkeypatch.setattr(nodes, "software", lambda: found | {"torch": "1.0"})
    with pytest.raises(NodesError, match=r"node 1 \(.*\) has torch .* instead of 1\.0: install the same"):
        gathered(run, port)
    with pytest.raises(RunError, match=r"this node has torch .* instead of 1\.0"):
        other.result(timeout=20)


def test_a_node_that_does_not_come_and_a_stranger(run: Run, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "JOIN_SECONDS", 1.0)
    with ThreadPoolExecutor() as pool:
        stranger = pool.submit(node._take_part, run.folder, 1, ("127.0.0.1", port), "another job's key")
        with pytest.raises(NodesError, match=r"1 node of 2 did not come within 1 s \(there: none\)"):
            gathered(run, port)
        with pytest.raises(RunError, match="node 0 has ended"):
            stranger.result(timeout=20)


def start(run: Run, number: int, port: int, *more: str) -> subprocess.Popen[bytes]:
    names = [f"--node={number}", "--nodes=2", f"--meeting=127.0.0.1:{port}", "--key=a", *more]
    command = module_command(node.__name__, str(run.folder.path), *names)
    with run.folder.log.open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=child_environment())


@pytest.mark.process
@pytest.mark.parametrize(
    ("victim", "why"),
    [
        pytest.param(node.__name__, r"node 1 \(.*\) has ended or closed its connection", marks=pytest.mark.extended),
        (TRAINER, r"process 1 of 2 on node 1 \(.*\) was killed \(signal 9, SIGKILL\)"),
    ],
)
def test_two_nodes_train_one_run_and_what_dies_is_named(run: Run, root: Path, port: int, victim: str, why: str) -> None:
    first, second = (start(run, number, port) for number in (0, 1))
    wait_until(lambda: run.state.step >= 5 or run.final, 90, "step 5")
    assert run.status == "running", run.state.error
    assert "2 processes together" in summary(run.folder)["device"]
    (killed,) = (each for each in processes_of(root, victim) if second.pid in (each.pid, each.ppid()))
    killed.send_signal(signal.SIGKILL)
    with pytest.raises(RunFailed, match=f"{why}.*`workbench resume"):
        run.wait(timeout=60)
    assert first.wait(30) != 0
    second.wait(30)
    wait_until(lambda: not processes_of(root), 30, "the end of all")


@pytest.mark.process
def test_a_run_that_another_cluster_trains_is_left_alone(run: Run, port: int) -> None:
    there: dict[str, Any] = {
        "host": "other-cluster",
        "boot_id": f"not {boot_id()}",
        "heartbeat_monotonic": 1.0,
        "heartbeat": 5.0,
    }
    write_state(run.folder, status="running", **there)
    process = start(run, 0, port, "--nodes=1")
    while process.poll() is None:
        write_state(run.folder, status="running", **there)
        there["heartbeat"] += 1
        time.sleep(0.2)
    assert process.returncode == 2
    assert "is trained on other-cluster" in run.folder.log.read_text()
    assert read_state(run.folder).status == "running"
