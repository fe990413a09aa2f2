"""``on="slurm"`` against a cluster that the tests start: munge, Slurm's controller and two nodes on this machine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.launchers.slurm_cluster import HIDDEN, ask, cluster
from tests.run_folders import processes_of
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.base.errors import RunError, RunFailed
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.client.summary import summary
from workbench.launchers import slurm as slurm_module
from workbench.launchers.local import Local
from workbench.launchers.slurm import Slurm
from workbench.store.checkpoints import has_checkpoint

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("slurm")]


@pytest.fixture(scope="module")
def slurm() -> Iterator[Path]:
    # Others can look into no folder of pytest's.
    place = tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True)
    with place as folder, cluster(Path(folder)) as configuration:
        yield configuration


@pytest.fixture(autouse=True)
def looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_module, "LOOK_SECONDS", 0.5)


def stepped(run: Run, step: int, seconds: float = 120) -> None:
    wait_until(lambda: run.state.step >= step or run.status in ("failed", "lost"), seconds, f"step {step}")
    assert run.status == "running", (run.state, logs(run))


def logs(run: Run) -> str:
    return "\n".join(path.read_text() for path in sorted(run.folder.path.glob("*.log")))


def job_of(run: Run) -> str:
    return str(summary(run.folder)["where"]).partition("job ")[2].rstrip(")")


def test_a_run_trains_as_one_job_and_is_steered_through_its_folder(slurm: Path, corpus: Path, root: Path) -> None:
    run = launch(tiny_recipe(corpus, 1_000_000), on=Slurm(partition="low"), runs_dir=root)
    assert run.status in ("queued", "starting"), run.state
    job = job_of(run)
    assert ask("squeue", "--noheader", "--format=%A", f"--job={job}") == job
    stepped(run, 3)
    run.pause(timeout=60)
    run.resume(timeout=60)
    assert "0.002" in str(run.set("optimizer.lr", 0.002, timeout=60))
    run.stop(timeout=60)
    assert run.wait(timeout=60)["state"] == "stopped"  # type: ignore[index]
    assert has_checkpoint(run.folder.checkpoints)
    wait_until(lambda: not processes_of(root) and not ask("squeue", "--noheader"), 30, "the end of all")


def test_what_slurm_would_not_take_is_refused_before_there_is_a_run(slurm: Path, corpus: Path, root: Path) -> None:
    recipe = tiny_recipe(corpus)
    with pytest.raises(RunError, match=r"Slurm refuses: .*partition"):
        launch(recipe, on=Slurm(partition="none"), runs_dir=root)
    with pytest.raises(RunError, match="Slurm refuses"):
        launch(recipe, on=Slurm(nodes=3), runs_dir=root)
    assert not root.exists() or list(root.iterdir()) == []


def test_a_job_that_is_cancelled_before_it_began_is_a_run_that_was_stopped(
    slurm: Path, corpus: Path, root: Path
) -> None:
    blocker = ask("sbatch", "--parsable", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=sleep 60")
    waits, stops = (launch(tiny_recipe(corpus, 10), on=Slurm(), runs_dir=root) for _ in range(2))
    assert (waits.status, summary(waits.folder)["message"]) == ("queued", f"waiting in Slurm (job {job_of(waits)})")
    ask("scancel", job_of(waits))
    wait_until(lambda: waits.status == "stopped", 20, "the end")
    assert waits.state.message == f"cancelled in Slurm (job {job_of(waits)})"
    stops.stop()
    assert stops.status == "stopped"
    assert job_of(stops) not in ask("squeue", "--noheader", "--format=%A").split()
    ask("scancel", "--signal=KILL", blocker)


@pytest.mark.extended
def test_scancel_stops_a_run_with_a_checkpoint_and_leaves_nothing(slurm: Path, corpus: Path, root: Path) -> None:
    run = launch(tiny_recipe(corpus, 1_000_000), on=Slurm(nodes=2), runs_dir=root)
    stepped(run, 5)
    assert "2 processes together" in summary(run.folder)["device"]
    ask("scancel", job_of(run))
    assert run.wait(timeout=60)["state"] == "stopped"  # type: ignore[index]
    assert has_checkpoint(run.folder.checkpoints)
    wait_until(lambda: not processes_of(root) and not ask("squeue", "--noheader"), 60, "the end of all")
    # And it goes on where it was, as a new job.
    before, step = job_of(run), run.state.step
    run.resume()
    assert job_of(run) != before
    stepped(run, step + 3)
    run.stop(timeout=60)
    run.wait(timeout=60)


@pytest.mark.extended
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_run_gives_way_to_a_more_urgent_job_and_comes_back(slurm: Path, corpus: Path, root: Path, nodes: int) -> None:
    run = launch(tiny_recipe(corpus, 1_000_000), on=Slurm(nodes=nodes, cores=2), runs_dir=root)
    stepped(run, 5)
    urgent = ask("sbatch", "--parsable", "--nodes=2", "--exclusive", "--partition=high", "--output=/dev/null",
                 "--wrap=sleep 5")  # fmt: skip
    wait_until(lambda: run.status == "queued" or run.final, 60, "the way given")
    assert "Slurm took its nodes for another job" in summary(run.folder)["message"], (run.state, logs(run))
    assert has_checkpoint(run.folder.checkpoints)
    step = run.state.step
    wait_until(lambda: run.status == "running" or run.final, 180, "the second attempt")
    assert (run.state.attempt, job_of(run)) == (2, job_of(run)), run.state
    assert urgent not in ask("squeue", "--noheader", "--format=%A").split()
    stepped(run, step + 3)
    run.stop(timeout=60)
    assert run.wait(timeout=60)["state"] == "stopped"  # type: ignore[index]


@pytest.mark.extended
def test_a_run_goes_on_after_the_time_of_its_job(slurm: Path, corpus: Path, root: Path) -> None:
    run = launch(tiny_recipe(corpus, 1_000_000), on=Slurm(time_minutes=1, warn_seconds=30), runs_dir=root)
    stepped(run, 5)
    wait_until(lambda: run.status == "queued" or run.final, 120, "the end of its time")
    assert "time of its job" in summary(run.folder)["message"], (run.state, logs(run))
    wait_until(lambda: run.status == "running" or run.final, 120, "the second attempt")
    assert run.state.attempt == 2, run.state
    run.stop(timeout=60)
    run.wait(timeout=60)


@pytest.mark.extended
def test_processes_of_two_nodes_share_out_the_states_and_go_on_in_another_number(
    slurm: Path, corpus: Path, root: Path
) -> None:
    recipe = tiny_recipe(corpus, 40).with_(execution={"parallel": "zero"})
    # The queue of Slurm decides who has cores here, not ours.
    alone = launch(recipe, on=Local(), runs_dir=root)
    run = launch(recipe, on=Slurm(nodes=2, processes=2, cores=1), runs_dir=root)
    assert [each.wait(timeout=180)["steps"] for each in (alone, run)] == [40, 40]  # type: ignore[index]
    assert "4 processes together" in summary(run.folder)["device"]
    losses = [each.telemetry().series("loss")[1] for each in (alone, run)]
    assert losses[1] == pytest.approx(losses[0], abs=1e-4)
    fork = run.fork(budget="60 steps", on="local")
    assert fork.wait(timeout=120)["steps"] == 60  # type: ignore[index]


@pytest.mark.extended
def test_a_job_that_is_put_back_or_whose_supervisor_is_killed_goes_on(slurm: Path, corpus: Path, root: Path) -> None:
    run = launch(tiny_recipe(corpus, 1_000_000), on=Slurm(), runs_dir=root)
    stepped(run, 5)
    for attempt in (2, 3):
        if attempt == 2:
            ask("scontrol", "requeue", job_of(run))
        else:
            psutil.Process(psutil.Process(run.state.pid).ppid()).kill()
        wait_until(lambda attempt=attempt: run.state.attempt == attempt or run.final, 60, "the way given")
        wait_until(lambda: run.status == "running" or run.final, 120, "the next attempt")
        assert run.status == "running", (run.state, logs(run))
    run.stop(timeout=60)
    run.wait(timeout=60)


@pytest.mark.extended
def test_a_node_of_other_software_is_named(
    slurm: Path, corpus: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_module, "software", lambda: {"torch": "1.0"})
    run = launch(tiny_recipe(corpus, 10), on=Slurm(), runs_dir=root)
    with pytest.raises(RunFailed, match=r"node 0 \(.*\) has .*torch .* instead of 1.0"):
        run.wait(timeout=120)
    wait_until(lambda: not processes_of(root), 30, "the end of all")


@pytest.mark.extended
def test_a_node_that_does_not_see_the_runs_folder_is_named(slurm: Path, corpus: Path) -> None:
    root = slurm.parent / HIDDEN
    run = launch(tiny_recipe(corpus, 10), on=Slurm(partition="blind"), runs_dir=root)
    with pytest.raises(
        RunFailed, match=r"Slurm job \d+ ended as FAILED \(exit code .*, on n3\).* n3 may not see the run"
    ):
        run.wait(timeout=60)
    assert not processes_of(root)


def test_without_slurm_it_says_what_is_missing(
    corpus: Path, root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunError, match="needs Slurm's `sbatch`, which this machine lacks"):
        launch(tiny_recipe(corpus), on="slurm", runs_dir=root)
    assert os.environ["PATH"] == str(tmp_path)
