"""A look of many that wait reads few files: counted, never timed. And what it relies on may be old, damaged or gone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from workbench.launchers.queue import front as fronts
from workbench.launchers.queue import turn as turns
from workbench.launchers.queue.changes import set_priority
from workbench.launchers.queue.front import Front, begin_look, read_front, write_front
from workbench.launchers.queue.queue_folder import Queue
from workbench.launchers.queue.settings import write_settings
from workbench.launchers.queue.turn import Turn, enter
from workbench.store.folder import RunFolder

NewRun = Callable[..., RunFolder]
MANY = 200


def settle(queue: Queue) -> None:
    """As if what has changed had done so an hour ago."""
    begin_look(queue.folder)
    now = time.time_ns()
    for path in (*queue.folder.iterdir(), queue.folder):
        if (changed := path.stat().st_mtime_ns) > now - 10**12:
            os.utime(path, ns=(changed - 3600 * 10**9, changed - 3600 * 10**9))


@pytest.fixture
def opened(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the queue's tickets as they are opened."""
    names: list[str] = []
    real = os.open

    def counted(path: str | Path, *rest: int, **options: int) -> int:
        if str(path).endswith(".ticket"):
            names.append(os.path.basename(path))
        return real(path, *rest, **options)

    monkeypatch.setattr(os, "open", counted)
    return names


def many(queue: Queue, new_run: NewRun) -> list[Turn]:
    """One that trains, and many that wait; each is held by a descriptor of this process."""
    entered = [enter(new_run("first"))]
    for number in range(MANY):
        folder = new_run(f"n{number:04d}")
        ticket = replace(turns.ticket_of(folder), number=2 + number)
        with queue.locked():
            entered.append(Turn(queue, ticket, queue.create(ticket)))
    settle(queue)
    return entered


def test_one_look_reads_all_and_serves_everybody(queue: Queue, new_run: NewRun, opened: list[str]) -> None:
    first, *waiting = many(queue, new_run)
    opened.clear()
    assert not waiting[-1].claim()
    assert MANY <= len(opened) <= MANY + 10, "somebody must"
    assert waiting[-1].position == 11, "far behind"
    opened.clear()
    assert not any(turn.claim() for turn in waiting[1:])
    assert len(opened) <= 3 * MANY, "its own, who trains, who is next, nobody else's"
    assert [turn.position for turn in waiting[1:12]] == [*range(2, 11), 11, 11]
    opened.clear()
    assert not any(turn.claim() for turn in waiting)
    assert set(opened[1:]) <= {first.ticket.file, waiting[0].ticket.file}, "only whether they are still there"


def test_after_a_change_only_what_is_new_is_read(queue: Queue, new_run: NewRun, opened: list[str]) -> None:
    first, *waiting = many(queue, new_run)
    assert not waiting[0].claim()
    late = enter(new_run("late"))
    settle(queue)
    opened.clear()
    assert not waiting[7].claim()
    assert len(opened) <= 10
    first.leave()
    settle(queue)
    opened.clear()
    assert not waiting[7].claim()
    assert len(opened) <= 10
    assert [turn.claim() for turn in (late, waiting[1], waiting[0])] == [False, False, True]
    assert len(opened) <= 40
    assert not waiting[1].claim()


def test_whoever_enters_reads_what_is_new(queue: Queue, new_run: NewRun, opened: list[str]) -> None:
    first, *_ = many(queue, new_run)
    enter(new_run("x"))
    settle(queue)
    enter(new_run("y"))
    opened.clear()
    settle(queue)
    enter(new_run("z"))
    assert len(opened) <= 30, "what has changed, what trains and the first in line"
    assert first.running


CLAIM = """
import os, sys
from pathlib import Path
from workbench.store.folder import RunFolder
from workbench.launchers.queue import turn
opened, real = [], os.open
def counted(path, *rest, **options):
    if str(path).endswith(".ticket"):
        opened.append(path)
    return real(path, *rest, **options)
os.open = counted
found = turn.inherited(RunFolder(Path(sys.argv[1])))
print(found.claim(), found.position, len(opened))
"""


@pytest.mark.process
def test_another_process_needs_no_look_of_its_own(queue: Queue, new_run: NewRun) -> None:
    _, *waiting = many(queue, new_run)
    assert not waiting[0].claim()
    last = waiting[-1]
    ((variable, descriptor),) = last.descriptors.items()
    child = subprocess.run(
        [sys.executable, "-c", CLAIM, last.ticket.folder], env={**os.environ, variable: str(descriptor)},
        pass_fds=[descriptor], capture_output=True, text=True, check=True,
    )  # fmt: skip
    claimed, position, opened = child.stdout.split()
    assert (claimed, position) == ("False", "11")
    assert int(opened) <= 5


def test_who_is_killed_makes_room_although_no_file_changes(queue: Queue, new_run: NewRun) -> None:
    first, second, third, last = (enter(new_run(name)) for name in "abcd")
    settle(queue)
    assert not last.claim()
    second.hand_over()
    first.hand_over()
    assert [last.claim(), third.claim(), last.claim()] == [False, True, False]
    settle(queue)
    assert not last.claim()
    third.hand_over()
    assert last.claim()


def test_one_that_could_train_and_is_killed_holds_nobody_up(queue: Queue, new_run: NewRun) -> None:
    first, second, third = (enter(new_run(name)) for name in "abc")
    first.leave()
    settle(queue)
    assert not third.claim()
    front = read_front(queue.folder)
    assert front is not None
    assert front.next == (second.ticket.file,)
    second.hand_over()
    assert third.claim()


def test_one_that_needs_more_than_is_free_and_is_killed_holds_nobody_up(queue: Queue, new_run: NewRun) -> None:
    write_settings(queue.folder, {"cores": 2})
    needs = {"a": 1, "b": 2, "c": 1, "d": 1}
    first, large, small, last = (enter(new_run(name, threads=threads)) for name, threads in needs.items())
    settle(queue)
    assert [each.claim() for each in (large, small, last)] == [False] * 3, "nobody is overtaken"
    large.hand_over()
    assert small.claim()
    assert first.running
    assert not last.claim()


def test_a_queue_that_somebody_deleted_starts_nobody_beside_what_trains(queue: Queue, new_run: NewRun) -> None:
    training, waiting = enter(new_run("a")), enter(new_run("b"))
    settle(queue)
    assert not waiting.claim()
    shutil.rmtree(queue.folder)
    assert not waiting.claim()
    write_settings(queue.folder, {"cores": 1})
    assert not waiting.claim(), "what trains is about to write its ticket anew"
    training.keep()
    waiting._decides_at = 0.0
    assert not waiting.claim()
    training.leave()
    assert waiting.claim()
    assert waiting.problem == ""


def test_who_does_not_take_its_turn_is_passed_over_by_those_who_did_not_look(
    queue: Queue, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _suspended, third, last = (enter(new_run(name)) for name in "abcd")
    first.leave()
    settle(queue)
    assert not third.claim()
    assert not last.claim()
    monkeypatch.setattr(turns, "PATIENCE_SECONDS", 0.0)
    assert not last.claim(), "the third is before it"
    assert third.claim()


def test_changes_by_people_are_seen_by_all(queue: Queue, new_run: NewRun) -> None:
    first, second, third = (enter(new_run(name)) for name in "abc")
    settle(queue)
    assert [second.claim(), third.claim()] == [False, False]
    set_priority(third.ticket.run.id, 5)
    settle(queue)
    first.leave()
    assert [second.claim(), third.claim()] == [False, True]
    settle(queue)
    assert not second.claim()
    write_settings(queue.folder, {"cores": 2})
    assert second.claim()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"changed": 1}', b"\0" * 9000, None])
def test_a_damaged_front_is_written_anew(queue: Queue, new_run: NewRun, data: bytes | None) -> None:
    first, second, third = (enter(new_run(name)) for name in "abc")
    settle(queue)
    assert not second.claim()
    (path,) = queue.folder.glob("front-*")
    if data is None:
        path.unlink()
        path.symlink_to("/dev/zero")
    else:
        path.write_bytes(data)
    settle(queue)
    assert not third.claim()
    assert (read_front(queue.folder) is None) == (data is None), "a link is nobody's word"
    first.leave()
    assert [third.claim(), second.claim()] == [False, True]


def test_a_front_is_believed_as_long_as_nothing_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin_look(tmp_path)
    os.utime(tmp_path, ns=(10**18, 10**18))
    front = Front(*begin_look(tmp_path), ("t",), ("n",), ("n", "m"))
    assert front.changed == 10**18
    write_front(tmp_path, front)
    assert read_front(tmp_path) == front
    assert [front.position(file) for file in "nmx"] == [1, 2, 3]
    write_front(tmp_path, replace(front, looked=front.changed + fronts.SETTLED_NS))
    assert read_front(tmp_path) is None, "a change in the same tick of the clock would not show"
    write_front(tmp_path, front)
    (tmp_path / "somebody.ticket").touch()
    assert read_front(tmp_path) is None
    os.utime(tmp_path, ns=(10**18, 10**18))
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    begin_look(tmp_path)
    (mine,) = tmp_path.glob("front-12345.json")
    mine.write_text(json.dumps({"changed": 10**18, "looked": 2 * 10**18, "training": [], "next": [], "first": []}))
    assert read_front(tmp_path) is None, "the file is another user's"
