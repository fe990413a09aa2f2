"""Turns: taken once, given back by any end, and found again whatever became of the files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from workbench.launchers.queue import ticket as tickets
from workbench.launchers.queue import turn as turns
from workbench.launchers.queue.outlook import outlook, training_now
from workbench.launchers.queue.queue_folder import Queue
from workbench.launchers.queue.settings import write_settings
from workbench.launchers.queue.turn import enter, reserve, turn_of
from workbench.store.folder import RunFolder, write_json

NewRun = Callable[..., RunFolder]


def test_the_next_has_its_turn_when_one_ends(queue: Queue, new_run: NewRun) -> None:
    first, second, third = (enter(new_run(name)) for name in "abc")
    assert [each.claim() for each in (first, second, third)] == [True, False, False]
    first.leave()
    assert [each.claim() for each in (third, second)] == [False, True]
    # As the kernel does for whoever is killed.
    second.drop()
    assert third.claim()
    third.leave()
    assert [each.name for each in queue.tickets() if each.alive] == []


def test_who_does_not_wait_is_counted(queue: Queue, new_run: NewRun) -> None:
    turns = [enter(new_run("a")), enter(new_run("b"), wait=False)]
    assert [each.name for each in training_now()] == ["a", "b"]
    assert not enter(new_run("c")).running
    for each in turns:
        each.leave()


def test_more_cores_let_more_train(queue: Queue, new_run: NewRun) -> None:
    turns = [enter(new_run(name)) for name in "abc"]
    assert not turns[1].claim()
    write_settings(queue.folder, {"cores": 2})
    assert [each.claim() for each in turns] == [True, True, False]


def names(queue: Queue) -> tuple[str, str]:
    """Return the names of what trains, and of what waits."""
    found = outlook(queue)
    return "".join(each.name for each in found.training), "".join(each.name for each in found.waiting)


def test_what_somebody_deleted_comes_back(queue: Queue, new_run: NewRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "KEEP_SECONDS", 0.0)
    training, waiting = enter(new_run("a")), enter(new_run("b"))
    shutil.rmtree(queue.folder)
    training.keep()
    write_settings(queue.folder, {"cores": 1})
    assert not waiting.claim()
    assert names(queue) == ("a", "b")
    for turn in (training, waiting):
        (queue.folder / turn.ticket.file).write_bytes(b"\0" * 9000)
    assert training_now() == []
    training.keep()
    assert not waiting.claim()
    assert names(queue) == ("a", "b")
    training.leave()
    assert waiting.claim()
    waiting.leave()


def test_who_does_not_take_its_turn_is_passed_over(
    queue: Queue, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, suspended, last = (enter(new_run(name)) for name in "abc")
    first.leave()
    assert not last.claim()
    monkeypatch.setattr(turns, "PATIENCE_SECONDS", 0.0)
    assert last.claim()
    assert not suspended.claim(), "it wakes up, and waits again"


def test_of_several_gpus_a_run_gets_a_free_one(queue: Queue, new_run: NewRun) -> None:
    found = [enter(new_run(name, gpus=["0", "1"])) for name in "abc"]
    assert [(turn.running, turn.gpu) for turn in found] == [(True, "0"), (True, "1"), (False, "")]
    found[0].leave()
    assert (found[2].claim(), found[2].gpu) == (True, "0")
    assert enter(new_run("d", gpus=["5"])).gpu == "", "the only one needs no choice"


def test_who_does_not_wait_takes_the_gpu_that_is_free_and_others_know(queue: Queue, new_run: NewRun) -> None:
    gpus = ["0", "1"]
    found = [enter(new_run(name, gpus=gpus), wait=name == "b") for name in "abc"]
    assert [turn.gpu for turn in found] == ["0", "1", "0"]
    assert not enter(new_run("d", gpus=gpus)).running


def test_a_reserved_turn_counts_until_its_supervisor_takes_it(
    queue: Queue, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [new_run(name) for name in "abc"]
    assert [reserve(folder, wait=True, priority=0)[0].running for folder in folders] == [True, False, False]
    found = [turn_of(folder) for folder in folders[::-1]]
    assert [turn.running for turn in found] == [False, False, True], "in the order of their launches"
    assert names(queue) == ("a", "bc")
    found[2].leave()
    assert [turn.claim() for turn in found[:2]] == [False, True]
    # Whoever is killed before it comes keeps nobody waiting for long.
    found[1].leave()
    found[0].leave()
    reserve(new_run("d"), wait=True, priority=0)
    waiting = enter(new_run("e"))
    assert not waiting.running
    monkeypatch.setattr(tickets, "RESERVED_SECONDS", 0.0)
    monkeypatch.setattr("workbench.launchers.queue.queue_folder.RESERVED_SECONDS", 0.0)
    assert waiting.claim()


def test_a_run_of_another_launcher_needs_no_turn_here(queue: Queue, new_run: NewRun) -> None:
    folder = new_run("a")
    write_json(folder.launched, {"on": "cluster"})
    assert turn_of(folder).running
    assert queue.tickets() == []


def test_who_is_killed_makes_room_although_no_file_changes(queue: Queue, new_run: NewRun) -> None:
    first, second, third, last = (enter(new_run(name)) for name in "abcd")
    time.sleep(0.05)
    assert not last.claim()
    second.drop()
    first.drop()
    assert [last.claim(), third.claim(), last.claim()] == [False, True, False]
    third.drop()
    assert last.claim()


def test_one_that_needs_more_than_is_free_and_is_killed_holds_nobody_up(queue: Queue, new_run: NewRun) -> None:
    write_settings(queue.folder, {"cores": 2})
    needs = {"a": 1, "b": 2, "c": 1, "d": 1}
    first, large, small, last = (enter(new_run(name, threads=threads)) for name, threads in needs.items())
    time.sleep(0.05)
    assert [each.claim() for each in (large, small, last)] == [False] * 3, "nobody is overtaken"
    large.drop()
    assert small.claim()
    assert first.running
    assert not last.claim()


def test_a_look_at_a_queue_in_which_nothing_has_changed_opens_few_files(
    queue: Queue, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [enter(new_run(f"n{number}")) for number in range(40)]
    time.sleep(0.05)
    assert not found[-1].claim()
    opened: list[str] = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest, **named: (opened.append(path), real(path, *rest, **named))[1])
    assert not found[-1].claim()
    assert len(opened) <= 3, "whether those that train are still there"


def test_a_place_is_kept_for_who_comes_back(queue: Queue, new_run: NewRun) -> None:
    folders = [new_run(name) for name in "abc"]
    found = [enter(folder) for folder in folders]
    found[1].drop()
    again = enter(folders[1])
    assert names(queue) == ("a", "bc")
    assert again.ticket.number == 2
    for each in (found[0], again, found[2]):
        each.leave()


WORKER = """
import os, sys, time
from pathlib import Path
from workbench.store.folder import RunFolder
from workbench.launchers.queue.turn import enter
log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
turns = {path: enter(RunFolder(Path(path))) for path in sys.argv[2:]}
while turns:
    path, turn = min(turns.items(), key=lambda each: each[1].ticket.number)
    if turn.claim():
        os.write(log, f"+{path}\\n".encode())
        os.write(log, f"-{path}\\n".encode())
        turn.leave()
        del turns[path]
    time.sleep(0.001)
"""


def many_jobs(processes: int, jobs: int, cores: int, root: Path) -> None:
    """So many processes hold so many jobs: each has its turn once, and never are there more at once than cores."""
    log = root / "log"
    log.touch()
    paths = []
    for number in range(jobs):
        folder = RunFolder(root / f"job-{number:04d}")
        folder.path.mkdir()
        write_json(folder.recipe, {"execution": {"threads": 1}}, durable=False)
        paths.append(str(folder.path))
    command = [sys.executable, "-c", WORKER, str(log)]
    children = [subprocess.Popen([*command, *paths[first::processes]]) for first in range(processes)]
    assert [child.wait() for child in children] == [0] * processes
    lines = log.read_text().splitlines()
    assert sorted(line[1:] for line in lines if line[0] == "+") == paths, "each job once"
    going = 0
    for line in lines:
        going += 1 if line[0] == "+" else -1
        assert 0 <= going <= cores


@pytest.mark.extended
@pytest.mark.process
def test_every_job_has_its_turn_once(queue: Queue, tmp_path: Path) -> None:
    """The large one: ``python -m tests.launchers.queue.test_turn 8 1000``."""
    root = tmp_path / "jobs"
    root.mkdir()
    write_settings(queue.folder, {"cores": 2})
    many_jobs(4, 40, 2, root)
    assert queue.tickets() == []


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        os.environ["WORKBENCH_QUEUE"] = f"{temporary}/queue"
        Path(temporary, "queue").mkdir()
        write_settings(Path(temporary, "queue"), {"cores": 3, "waiting_per_owner": 10_000})
        Path(temporary, "jobs").mkdir()
        began = time.monotonic()
        many_jobs(int(sys.argv[1]), int(sys.argv[2]), 3, Path(temporary, "jobs"))
        print(f"{sys.argv[2]} jobs by {sys.argv[1]} processes, each once: {time.monotonic() - began:.1f} s")
