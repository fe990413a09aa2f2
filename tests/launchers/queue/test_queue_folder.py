"""The queue's folder: where it is, who may use it, what is swept away."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import SmallDisk
from workbench.base.errors import RunError
from workbench.launchers.queue import queue_folder
from workbench.launchers.queue.outlook import outlook, training_now
from workbench.launchers.queue.queue_folder import Queue, queue_here
from workbench.launchers.queue.settings import write_settings
from workbench.launchers.queue.ticket import ticket_of
from workbench.launchers.queue.turn import check_room, enter
from workbench.store.folder import RunFolder, write_json
from workbench.store.state import take_lock

NewRun = Callable[..., RunFolder]


def test_a_variable_names_it_else_it_is_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_QUEUE", str(tmp_path / "shared"))
    assert queue_here() == Queue(tmp_path / "shared")
    monkeypatch.delenv("WORKBENCH_QUEUE")
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    assert queue_here() == Queue(tmp_path / "cache" / "queue")


def test_other_users_can_read_what_they_must_whatever_the_umask(queue: Queue, new_run: NewRun) -> None:
    before = os.umask(0o077)
    try:
        turn = enter(new_run("a"))
        write_settings(queue.folder, {"cores": 2})
    finally:
        os.umask(before)
    for name in ("lock", "settings.json", turn.ticket.file):
        assert (queue.folder / name).stat().st_mode & 0o777 == 0o644


def test_off_means_that_nothing_waits(new_run: NewRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_QUEUE", "off")
    turn = enter(new_run("a", threads=10_000))
    assert (turn.running, turn.problem) == (True, "")
    assert (training_now(), outlook().waiting) == ([], [])
    turn.leave()


def test_never_on_a_file_system_of_another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORKBENCH_QUEUE")
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    (kind,) = {
        line.split()[2] for line in Path("/proc/self/mounts").read_text().splitlines() if line.split()[1] == "/"
    } or {"none"}
    # What this disk is called stands for what a file server's is called.
    monkeypatch.setattr(queue_folder, "_NETWORK", (kind,))
    found = queue_here()
    assert found is not None
    assert found.folder.name == f"workbench-queue-{os.getuid()}"


@pytest.mark.parametrize("what", ["a file is there", "nobody may write"])
def test_a_queue_that_cannot_be_used_keeps_no_run_from_training(
    new_run: NewRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    place = tmp_path / "place"
    if what == "a file is there":
        place.write_text("")
    else:
        # Root may write anywhere but in what the kernel keeps.
        place = Path("/proc/1/queue")
    monkeypatch.setenv("WORKBENCH_QUEUE", str(place))
    turn = enter(new_run("a"))
    assert turn.running
    assert f"the queue in {place} cannot be used" in turn.problem
    assert "the run does not wait" in turn.problem
    check_room()
    turn.leave()


def test_on_a_full_disk_a_run_trains_and_one_that_waits_goes_on(
    new_run: NewRun, small_disk: Callable[[str], SmallDisk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = small_disk("64k")
    monkeypatch.setenv("WORKBENCH_QUEUE", str(disk.path / "queue"))
    queue = Queue(disk.path / "queue")
    first, second = enter(new_run("a", threads=1000)), enter(new_run("b"))
    assert not second.running
    disk.fill()
    third = enter(new_run("c"))
    assert "No space left" in third.problem
    assert third.running
    first.leave()
    assert second.claim(), "a turn is taken without new space"
    assert [each.name for each in training_now()] == ["b"]
    assert len(list(queue.folder.iterdir())) == 2, "a lock, a ticket, nothing half-written"
    second.leave()


def test_what_is_dead_is_swept_and_what_waits_is_kept(queue: Queue, new_run: NewRun) -> None:
    ended, waiting, gone = new_run("a", status="finished"), new_run("b"), new_run("c")
    for folder in (ended, waiting, gone):
        enter(folder).drop()
    gone.state.unlink()
    (queue.folder / "x.ticket").write_text("{")
    with queue.locked():
        kept, damaged = queue.sweep()
    assert ([each.name for each in kept], damaged) == (["b"], ["x.ticket"])
    assert [each.name for each in queue.tickets()] == ["b"]
    turn = enter(new_run("d"))
    assert turn.running, "the dead hold nothing"
    assert [each.name for each in outlook(queue).without_process] == ["b"]


def test_a_trainer_that_outlives_its_supervisor_keeps_its_place(queue: Queue, new_run: NewRun) -> None:
    folder = new_run("a", status="running")
    turn = enter(folder)
    lock = take_lock(folder)
    turn.drop()
    assert [each.name for each in training_now()] == ["a"]
    assert not enter(new_run("b")).running
    os.close(lock)
    assert training_now() == []


def test_an_owner_has_as_many_waiting_as_is_allowed(queue: Queue, new_run: NewRun) -> None:
    write_settings(queue.folder, {"cores": 1, "waiting_per_owner": 1})
    turns = [enter(new_run(name)) for name in "ab"]
    with pytest.raises(RunError, match=r"1 of your runs wait already.*raise waiting_per_owner"):
        check_room()
    turns[1].leave()
    check_room()
    turns[0].leave()


OTHER_USER = """
import os, sys
from pathlib import Path
from workbench.store.folder import RunFolder
from workbench.launchers.queue.changes import set_priority
from workbench.launchers.queue.turn import enter
os.environ["WORKBENCH_OWNER"] = "the other"
# Only now: this user may not read root's packages.
os.setgid(65534), os.setuid(65534)
folder = RunFolder(Path(sys.argv[1]))
turn = enter(folder)
print(turn.running, turn.problem)
try:
    set_priority("20260101-000000-a", 5)
except Exception as error:
    print(type(error).__name__, error)
sys.stdin.readline()
print(turn.claim())
"""


@pytest.fixture
def tmp_path_for_all() -> Iterator[Path]:
    """A folder that every user reaches; those of pytest are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.process
def test_two_users_share_a_folder_that_all_may_write_to(
    tmp_path_for_all: Path, monkeypatch: pytest.MonkeyPatch, new_run: NewRun
) -> None:
    shared, theirs = tmp_path_for_all / "queue", RunFolder(tmp_path_for_all / "20260101-000000-x")
    shared.mkdir()
    shared.chmod(0o1777)
    theirs.path.mkdir()
    write_json(theirs.recipe, {"name": "x", "execution": {"threads": 1}})
    monkeypatch.setenv("WORKBENCH_QUEUE", str(shared))
    queue = Queue(shared)
    write_settings(shared, {"cores": 1})
    first, waiting = enter(new_run("t")), enter(new_run("a"))
    child = subprocess.Popen(
        [sys.executable, "-u", "-c", OTHER_USER, str(theirs.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdin is not None
    assert child.stdout.readline().strip() == "False"
    assert child.stdout.readline().startswith("RunError run '20260101-000000-a' is ")
    assert [each.name for each in outlook(queue).waiting] == ["x", "a"], "owners take turns"
    first.leave()
    assert not waiting.claim(), "it is the other's turn"
    assert child.communicate("\n", timeout=30)[0].strip() == "True"
    assert waiting.claim(), "the other has ended"
    waiting.leave()


def test_a_ticket_under_a_wrong_name_counts_for_nothing(queue: Queue, new_run: NewRun) -> None:
    turn = enter(new_run("a"))
    with queue.locked():
        other = queue.create(replace(ticket_of(new_run("b")), running=True))
    (queue.folder / ticket_of(new_run("c")).file).symlink_to(queue.folder / turn.ticket.file)
    (queue.folder / turn.ticket.file).with_suffix(".copy.ticket").write_bytes(
        (queue.folder / turn.ticket.file).read_bytes()
    )
    os.mkfifo(queue.folder / "pipe.ticket")
    assert sorted(each.name for each in queue.tickets()) == ["a", "b"]
    os.close(other)
    turn.leave()
