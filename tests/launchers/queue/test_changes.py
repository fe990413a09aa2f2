"""Moving runs that wait: among their owner's own, by place or priority."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workbench.base.errors import RunError
from workbench.jupyter.runs.run_actions import RunActions
from workbench.launchers.queue.changes import move, set_priority, waiting_ticket
from workbench.launchers.queue.line import in_line
from workbench.launchers.queue.queue_folder import Queue
from workbench.launchers.queue.turn import Turn, enter
from workbench.store.folder import RunFolder
from workbench.store.labels import label

PREFIX = "20260101-000000-"


def test_a_queue_that_cannot_be_locked_is_said_to_be(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(fcntl, "flock", refuses)
    with pytest.raises(RunError, match=f"the queue in {queue.folder} cannot be changed: Permission denied"):
        move("a", 1)


def test_where_nothing_ever_waited_no_run_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_QUEUE", str(tmp_path / "none"))
    with pytest.raises(RunError, match="no run 'a' waits here"):
        move("a", 1)


@pytest.fixture
def turns(queue: Queue, new_run: Callable[..., RunFolder]) -> Iterator[list[Turn]]:
    """One that trains, and four that wait."""
    found = [enter(new_run(name)) for name in "tabcd"]
    yield found
    for turn in found:
        turn.leave()


def order(queue: Queue) -> str:
    return "".join(each.name for each in in_line(queue.tickets()))


@pytest.mark.parametrize(
    ("run", "place", "after"),
    [("d", 1, "dabc"), ("a", 4, "bcda"), ("b", 3, "acbd"), ("b", 99, "acdb"), ("c", 3, "abcd")],
)
@pytest.mark.usefixtures("turns")
def test_a_run_is_moved_and_stays_there(queue: Queue, run: str, place: int, after: str) -> None:
    move(PREFIX + run, place)
    assert order(queue) == after


def test_a_move_crosses_priorities_and_a_moved_run_is_still_held(queue: Queue, turns: list[Turn]) -> None:
    set_priority(PREFIX + "c", 5)
    assert order(queue) == "cabd"
    move(PREFIX + "d", 1)
    assert order(queue) == "dcab"
    set_priority(PREFIX + "d", -5)
    assert order(queue) == "cabd"
    turns[0].leave()
    assert [turn.claim() for turn in turns[1:]] == [False, False, True, False]


@pytest.mark.usefixtures("turns")
def test_others_keep_their_turns(
    queue: Queue, new_run: Callable[..., RunFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_OWNER", "another")
    other = enter(new_run("x"))
    assert order(queue) == "xabcd"
    move(PREFIX + "d", 1)
    assert order(queue) == "xdabc"
    other.leave()


@pytest.mark.usefixtures("turns")
def test_a_run_is_moved_by_what_it_is_called(queue: Queue) -> None:
    label(waiting_ticket(queue.tickets(), PREFIX + "d").run, name="my last")
    move("my last", 1)
    assert order(queue) == "dabc"
    label(waiting_ticket(queue.tickets(), PREFIX + "a").run, name="my last")
    with pytest.raises(RunError, match="'my last' is the name of 2 runs that wait; of those: "):
        move("my last", 1)


@pytest.mark.usefixtures("turns")
def test_what_cannot_be_moved_is_told(queue: Queue) -> None:
    with pytest.raises(RunError, match="no run 'nothing' waits here; what waits: 20260101-000000-a, "):
        move("nothing", 1)
    with pytest.raises(RunError, match="begins the ids of 4 runs that wait"):
        move("2026", 1)
    with pytest.raises(RunError, match="place 0 is before the first"):
        move(PREFIX + "a", 0)
    with pytest.raises(RunError, match=r"priority 1001 is beyond -1000\.\.1000"):
        set_priority(PREFIX + "a", 1001)
    assert order(queue) == "abcd"


def test_without_a_queue_nothing_can_be_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_QUEUE", "off")
    with pytest.raises(RunError, match="switched off"):
        move("a", 1)


def test_the_page_lets_a_run_be_the_next(queue: Queue, turns: list[Turn]) -> None:
    trains, *_, last = (turn.ticket.run for turn in turns)
    actions = RunActions(last.path.parent)
    (moved,) = actions.perform("next", [last.id], {})
    assert moved.text.startswith("d: position 1, start unknown: ")
    assert moved.waits == last.id
    assert order(queue) == "dabc"
    with pytest.raises(RunError, match="trains already and no longer waits"):
        list(actions.perform("next", [trains.id], {}))
