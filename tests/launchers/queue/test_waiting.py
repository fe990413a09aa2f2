"""Real runs on a machine of one core: they wait, say so, take their turns, are stopped, killed, and start again."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import psutil
import pytest

from tests.run_folders import processes_of
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.client.summary import describe, summary
from workbench.launchers.queue.outlook import outlook, training_now
from workbench.launchers.queue.queue_folder import Queue
from workbench.store.lease import whoami
from workbench.store.state import lock_held

ENDLESS = 100_000


def supervisor_of(run: Run) -> psutil.Process:
    (found,) = processes_of(run.folder.path, "workbench.launchers.supervisor")
    return found


def handles(process: psutil.Process, number: signal.Signals) -> bool:
    """Return True if a process has a handler for a signal by now, which would end it before."""
    (caught,) = re.findall(r"SigCgt:\s*([0-9a-f]+)", Path(f"/proc/{process.pid}/status").read_text())
    return bool(int(caught, 16) >> (number - 1) & 1)


@pytest.mark.process
def test_a_second_run_waits_says_so_and_has_its_turn(corpus: Path, root: Path, queue: Queue) -> None:
    said: list[str] = []
    first = launch(tiny_recipe(corpus, ENDLESS, "first"), runs_dir=root, say=said.append)
    short = tiny_recipe(corpus, 5)
    second, third = (launch(short, runs_dir=root, name=name, say=said.append) for name in ("second", "third"))
    unknown = "start unknown: no one can say yet how long the runs before it take"
    assert said == [f"{run.id}: queued, position {n}, {unknown}" for n, run in ((1, second), (2, third))]
    assert [run.status for run in (first, second, third)] == ["starting", "queued", "queued"]
    assert [ticket.folder for ticket in training_now()] == [str(first.folder.path)]
    row = summary(third.folder)
    assert (row["queue_position"], row["expected_start_seconds"], row["message"]) == (2, None, f"position 2, {unknown}")
    assert describe(third.folder)["queue"].startswith("position 2")

    assert second.stop(timeout=30) == "taken out of the queue before it began"
    result = second.wait(timeout=30)
    assert isinstance(result, dict)
    assert (result["state"], result["steps"]) == ("stopped", None)
    assert describe(second.folder)["why"] == f"taken out of the queue before it began, by {whoami()}"
    wait_until(lambda: outlook(queue).places[str(third.folder.path)].position == 1, 10, "the move up")
    first.stop()
    assert third.wait(timeout=120)["steps"] == 5  # type: ignore[index]
    wait_until(lambda: queue.tickets() == [], 30, "an empty queue")
    assert third.state.message != "waiting for its turn on this machine"


@pytest.mark.extended
@pytest.mark.process
def test_whoever_is_killed_leaves_its_place(corpus: Path, root: Path, queue: Queue) -> None:
    first, second, third = (launch(tiny_recipe(corpus, ENDLESS, name), runs_dir=root) for name in "abc")
    wait_until(lambda: all(lock_held(run.folder) for run in (first, second)), 30, "their supervisors")
    supervisor_of(second).kill()
    supervisor_of(first).kill()
    wait_until(lambda: third.status == "starting", 10, "the turn of the third")
    assert first.status == "lost"
    assert second.status == "queued", "it never began, so nothing of it is lost"
    assert "the process that waited for its turn is gone" in summary(second.folder)["message"]
    assert second.resume() == "queued again, attempt 1"
    wait_until(lambda: [each.run.id for each in outlook(queue).waiting] == [second.id], 10, "the second in the queue")
    with pytest.raises(Exception, match="it needs no resume"):
        second.resume()
    wait_until(lambda: handles(supervisor_of(second), signal.SIGTERM), 10, "the supervisor's handler")
    supervisor_of(second).send_signal(signal.SIGTERM)
    assert second.wait(timeout=10)["state"] == "stopped"  # type: ignore[index]


@pytest.mark.process
def test_the_next_launch_starts_what_a_reboot_left(corpus: Path, root: Path, queue: Queue) -> None:
    runs = [launch(tiny_recipe(corpus, ENDLESS, name), runs_dir=root) for name in "abc"]
    # One that has said nothing yet counts as starting for a while.
    wait_until(lambda: runs[0].status == "running", 60, "the first to train")
    # All at once, as a power cut does.
    for run in runs[::-1]:
        supervisor_of(run).kill()
    wait_until(lambda: not processes_of(root), 10, "the end of all")
    # A process that has ended counts as there until this one, its parent, has taken note.
    wait_until(lambda: [run.status for run in runs] == ["lost", "queued", "queued"], 10, "one lost, two still queued")
    last = launch(tiny_recipe(corpus, ENDLESS, "d"), runs_dir=root)
    wait_until(lambda: runs[1].status == "starting", 10, "the turn of the one that has waited longest")
    found = outlook(queue)
    assert [each.run.id for each in found.waiting] == [runs[2].id, last.id]
