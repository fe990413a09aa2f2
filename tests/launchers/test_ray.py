"""``on="ray"`` against a cluster of two nodes that the tests start on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import types
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.launchers.ray_cluster import Cluster, cluster
from tests.run_folders import processes_of
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.base.errors import RunError
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.client.summary import summary
from workbench.launchers import ray_job
from workbench.launchers.fork_server import TRAINER
from workbench.launchers.ray import BEAT, Ray
from workbench.launchers.ray_job import NODE
from workbench.store.checkpoints import has_checkpoint

pytestmark = pytest.mark.xdist_group("ray")


@pytest.fixture(scope="module")
def started() -> Iterator[Cluster]:
    with cluster() as found:
        yield found


@pytest.fixture
def ray(started: Cluster) -> Cluster:
    """Two nodes; one that a test before has killed is started again."""
    started.nodes = [node for node in started.nodes if node.poll() is None]
    if len(started.nodes) < 2:
        started.add()
    wait_until(lambda: started.has(2), 180, "two nodes")
    return started


def stepped(run: Run, step: int, attempt: int = 1) -> None:
    def there() -> bool:
        return (run.state.attempt, run.state.step) >= (attempt, step) and run.status == "running"

    with suppress(AssertionError):
        wait_until(lambda: run.final or there(), 300)
    assert there(), (run.state, logs(run))


def logs(run: Run) -> str:
    return "\n".join(path.read_text() for path in sorted(run.folder.path.glob("*.log")))


@pytest.mark.process
@pytest.mark.extended
def test_a_run_trains_on_two_nodes_and_goes_on_when_a_worker_is_killed(ray: Cluster, corpus: Path, root: Path) -> None:
    run = launch(tiny_recipe(corpus, 1_000_000), on=Ray(address=ray.address, nodes=2), runs_dir=root)
    assert summary(run.folder)["where"].startswith("Ray (")
    stepped(run, 5)
    assert "2 processes together" in summary(run.folder)["device"]
    run.pause(timeout=60)
    run.resume(timeout=60)
    run.ask("checkpoint", timeout=60)
    # A trainer, the process of a node, the worker of Ray's that started it, the keeper: each comes back by itself.
    for attempt, victim in enumerate((TRAINER, NODE, "parent", "keeper"), 2):
        step = run.state.step
        # Those of the second node.
        (node,) = (each for each in processes_of(root, NODE) if "--node=1" in each.cmdline())
        (keeper,) = (each for each in psutil.process_iter() if each.name().startswith("ray::Keeper"))
        trainer = next(iter(node.children()), None)
        found = {NODE: node, "parent": node.parent(), TRAINER: trainer, "keeper": keeper}[victim]
        assert isinstance(found, psutil.Process)
        found.send_signal(signal.SIGKILL)
        stepped(run, 1, attempt)
        assert run.state.step >= 5, step
        stepped(run, run.state.step + 3, attempt)
    run.stop(timeout=60)
    assert run.wait(timeout=60)["state"] == "stopped"  # type: ignore[index]
    wait_until(lambda: not processes_of(root), 60, "the end of all")
    # As a fork, it goes on where its parent trained.
    fork = run.fork(budget="100000000 steps")
    stepped(fork, run.state.step + 3)
    fork.stop(timeout=60)
    assert fork.wait(timeout=60)["state"] == "stopped"  # type: ignore[index]


@pytest.mark.process
@pytest.mark.extended
def test_what_the_cluster_cannot_give_is_refused_before_there_is_a_run(
    ray: Cluster, corpus: Path, root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recipe = tiny_recipe(corpus)
    with pytest.raises(RunError, match=r"has [12] nodes with 1 cores and 0 GPUs each, and nodes=3 are asked for"):
        launch(recipe, on=Ray(address=ray.address, nodes=3), runs_dir=root)
    with pytest.raises(RunError, match=r"the Ray cluster at 127\.0\.0\.1:9 was not reached"):
        launch(recipe, on="ray:address=127.0.0.1:9", runs_dir=root)
    wrong = tmp_path / "token"
    wrong.write_text("0" * 64)
    wrong.chmod(0o600)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(wrong))
    with pytest.raises(RunError, match="does not let us in: its token is missing here or another"):
        launch(recipe, on=Ray(address=ray.address), runs_dir=root)
    assert not root.exists() or list(root.iterdir()) == []


@pytest.mark.process
@pytest.mark.extended
def test_a_run_whose_node_dies_goes_on_at_another(ray: Cluster, corpus: Path, root: Path) -> None:
    # Of two cores, so that one node has room for a run, and both runs need both.
    runs = [launch(tiny_recipe(corpus, 1_000_000), on=Ray(address=ray.address, cores=2), runs_dir=root) for _ in "ab"]
    for run in runs:
        stepped(run, 5)
        run.ask("checkpoint", timeout=60)
    second = ray.nodes[1]
    theirs = {each.pid for each in psutil.Process(second.pid).children(recursive=True)}
    (run,) = (each for each in runs if each.state.pid in theirs)
    (other,) = (each for each in runs if each is not run)
    ray.kill(second)
    wait_until(lambda: run.status == "queued" or run.final, 120, "its death")
    assert "waiting in Ray" in run.state.message, run.state
    # No node is free; then one is.
    assert other.status == "running"
    other.stop(timeout=60)
    other.wait(timeout=60)
    stepped(run, 8, 2)
    assert has_checkpoint(run.folder.checkpoints)
    assert run.state.attempt == 2
    run.stop(timeout=60)
    run.wait(timeout=60)
    wait_until(lambda: not processes_of(root), 60, "the end of all")


def test_without_ray_or_with_an_old_one_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert ray_job.main(["check"]) == 1
    assert "`pip install workbench[ray]` installs it" in json.loads(capsys.readouterr().out)["error"]
    monkeypatch.setitem(sys.modules, "ray", types.SimpleNamespace(__version__="2.51.1"))
    assert ray_job.main(["check"]) == 1
    assert "needs Ray 2.52 or later, which knows tokens, and this is 2.51.1" in capsys.readouterr().out


@pytest.mark.process
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be more urgent than before")
@pytest.mark.parametrize(("said", "nice"), [({}, 0), ({ray_job.NICENESS: "15"}, 15)])
def test_trainers_give_way_only_where_the_cluster_says_so(said: dict[str, str], nice: int) -> None:
    child = "subprocess.run(['nice'], preexec_fn=ray_job._begin)"
    code = f"import os, subprocess; from workbench.launchers import ray_job; os.nice(15 - os.nice(0)); {child}"
    environment = {name: value for name, value in os.environ.items() if name != ray_job.NICENESS} | said
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert int(found.stdout) == nice


def test_a_keeper_that_is_silent_for_long_is_gone(tmp_path: Path) -> None:
    beat = tmp_path / BEAT
    handle = {"beat": str(beat)}
    assert (Ray().alive(handle), Ray().alive({"beat": "/nowhere/at/all"})) == (False, None)
    beat.touch()
    assert Ray().alive(handle) is True
    os.utime(beat, (0, 0))
    assert Ray().alive(handle) is False
