"""Runs that wait without a process: found, started once however many try, or ended."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.run_folders import processes_of
from tests.tiny_runs import wait_until
from workbench.base.errors import RunError
from workbench.client.run import Run
from workbench.client.summary import describe
from workbench.launchers.queue.orphans import is_orphan, orphans, start_orphan, start_orphans, withdraw
from workbench.launchers.queue.queue_folder import Queue
from workbench.launchers.queue.settings import write_settings
from workbench.launchers.queue.turn import STOPPED, enter
from workbench.store import requests
from workbench.store.control import send
from workbench.store.folder import RunFolder, write_json
from workbench.store.state import boot_id, lock_held, read_state, write_state

NewRun = Callable[..., RunFolder]


def orphan(new_run: NewRun, name: str, **state: object) -> RunFolder:
    folder = new_run(name, **state)
    write_json(folder.launched, {"on": "local", "folder": str(folder.path)})
    enter(folder).drop()
    return folder


def test_only_what_waits_here_without_a_process_is_one(queue: Queue, new_run: NewRun) -> None:
    folder = orphan(new_run, "a")
    assert (is_orphan(folder), orphans()) == (True, [folder])
    turn = enter(new_run("b"))
    assert orphans() == [folder], "the other has a process"
    for state in ({"host": "elsewhere"}, {"status": "finished"}):
        write_state(folder, **state)  # type: ignore[arg-type]
        assert (is_orphan(folder), orphans()) == (False, [])
    turn.leave()


def test_a_container_that_was_made_anew_is_the_same_machine(queue: Queue, new_run: NewRun) -> None:
    folder = orphan(new_run, "a", host="an-older-container", boot_id=boot_id())
    assert orphans() == [folder]


def test_of_one_that_waits_on_another_machine_nobody_says_that_it_needs_nothing(queue: Queue, new_run: NewRun) -> None:
    run = Run(orphan(new_run, "a", host="elsewhere"))
    with pytest.raises(RunError, match="is queued, attempt 1 on elsewhere: resume it there, or delete it"):
        run.resume()


def test_what_was_tied_to_a_process_is_not_started_by_others(queue: Queue, new_run: NewRun) -> None:
    folder = orphan(new_run, "a")
    write_json(folder.launched, {"on": "inline"})
    assert orphans() == []
    assert not withdraw(folder), "nobody asked for it"
    send(folder, "stop")
    assert withdraw(folder)


def test_a_forgotten_queue_is_found_in_the_runs_folder(queue: Queue, new_run: NewRun) -> None:
    folder = orphan(new_run, "a")
    for path in queue.folder.glob("*.ticket"):
        path.unlink()
    assert orphans() == []
    assert orphans(folder.path.parent) == [folder]


def test_a_stop_is_a_request_with_an_answer_also_where_nobody_is_there_to_give_one(
    queue: Queue, new_run: Callable[..., RunFolder]
) -> None:
    # Pages look for the answer by the request's id.
    run = Run(new_run("a"))
    answer = requests.look(run.folder, run.stop())
    assert (answer.state, answer.text, answer.status) == ("done", STOPPED, "stopped")
    assert Run(new_run("b")).stop(timeout=0) == STOPPED


def test_an_end_leaves_no_ticket(queue: Queue, new_run: NewRun) -> None:
    folder = orphan(new_run, "a")
    send(folder, "stop", by="ann@desk")
    assert withdraw(folder)
    assert describe(folder)["why"] == f"{STOPPED}, by ann@desk"
    assert (read_state(folder).status, queue.tickets()) == ("stopped", [])
    assert not withdraw(folder)


STARTER = "from workbench.launchers.queue.orphans import start_orphans; print(len(start_orphans()))"


@pytest.mark.extended
@pytest.mark.process
def test_of_many_who_start_them_each_is_started_once(queue: Queue, new_run: NewRun, tmp_path: Path) -> None:
    folders = [orphan(new_run, f"r{number}") for number in range(6)]
    blocking = enter(new_run("t"))
    starters = [subprocess.Popen([sys.executable, "-c", STARTER], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert sum(int(starter.communicate(timeout=60)[0]) for starter in starters) == len(folders)
    wait_until(lambda: all(lock_held(folder) for folder in folders), 30, "their supervisors")
    assert len(processes_of(tmp_path / "runs")) == len(folders)
    for folder in folders:
        assert Run(folder).stop(timeout=30)
    wait_until(lambda: not processes_of(tmp_path / "runs"), 30, "their ends")
    assert {read_state(folder).status for folder in folders} == {"stopped"}
    blocking.leave()


@pytest.mark.extended
@pytest.mark.process
def test_only_where_the_queue_was_emptied_a_launch_looks_through_its_runs_folder(
    queue: Queue, new_run: NewRun, tmp_path: Path
) -> None:
    folder = orphan(new_run, "a")
    for path in queue.folder.glob("*.ticket"):
        path.unlink()
    assert start_orphans(tmp_path / "runs", unless_known=True) == []
    shutil.rmtree(queue.folder)
    assert start_orphans(tmp_path / "runs", unless_known=True) == [folder]
    wait_until(lambda: not processes_of(tmp_path / "runs"), 60, "its end: what it is to train is no recipe")
    assert read_state(folder).status == "failed"


@pytest.mark.process
def test_one_that_cannot_be_started_keeps_no_other_waiting(queue: Queue, new_run: NewRun, tmp_path: Path) -> None:
    write_settings(queue.folder, {"cores": 1})
    blocking = enter(new_run("t"))
    broken, whole = orphan(new_run, "a"), orphan(new_run, "b")
    broken.log.mkdir()
    assert start_orphans() == [whole]
    assert is_orphan(broken)
    with pytest.raises(IsADirectoryError):
        start_orphan(broken)
    assert Run(whole).stop(timeout=30)
    wait_until(lambda: not processes_of(tmp_path / "runs"), 30, "its end")
    blocking.leave()
