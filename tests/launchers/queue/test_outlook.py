"""When a run is expected to start: by hand on small cases, unknown where nothing tells, in words."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import pytest

from tests.launchers.queue.test_line import ticket
from workbench.client.listing import Listing
from workbench.client.summary import message_of, summary
from workbench.launchers.queue import outlook as looks
from workbench.launchers.queue.outlook import (
    Outlook,
    Place,
    about,
    expected_starts,
    notice,
    obstacle,
    outlook,
    place_of,
    remaining_seconds,
)
from workbench.launchers.queue.queue_folder import Queue
from workbench.launchers.queue.settings import QueueSettings, write_settings
from workbench.launchers.queue.ticket import Ticket
from workbench.launchers.queue.turn import enter
from workbench.store.folder import RunFolder, write_json
from workbench.store.labels import label
from workbench.store.state import read_state, write_state

NewRun = Callable[..., RunFolder]


@pytest.fixture(autouse=True)
def every_look_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "LOOK_SECONDS", 0.0)


def starts(tickets: list[Ticket], remaining: Mapping[str, float | None], cores: int) -> dict[str, float | None]:
    found = expected_starts(tickets, QueueSettings(cores=cores), lambda each: remaining[each.name])
    return {folder.removeprefix("/"): seconds for folder, seconds in found.items()}


def line(waiting: str, training: str = "") -> list[Ticket]:
    return [
        Ticket(f"/{name}", name=name, number=number, running=name in training)
        for number, name in enumerate(training + waiting)
    ]


def test_what_trains_or_waits_is_listed_however_many_are_newer(queue: Queue, new_run: NewRun) -> None:
    trains, waits = new_run("a", status="running"), new_run("b")
    turns = [enter(trains), enter(waits)]
    for name in "cdef":
        new_run(name, status="finished")
    found = Listing(trains.path.parent).look(most=2)
    assert [row["name"] for row in found.rows] == ["f", "e", "b", "a"]
    assert found.total == 6
    for turn in turns:
        turn.leave()
    assert [row["name"] for row in Listing(trains.path.parent).look(most=2).rows] == ["f", "e"]


def test_on_one_core_they_follow_each_other() -> None:
    assert starts(line("abc", "t"), {"t": 10, "a": 20, "b": 30, "c": 1}, 1) == {"a": 10, "b": 30, "c": 60}


def test_on_two_cores_the_first_that_ends_makes_room() -> None:
    assert starts(line("abc", "tu"), {"t": 10, "u": 25, "a": 20, "b": 5, "c": 1}, 2) == {"a": 10, "b": 25, "c": 30}


def test_after_what_nobody_knows_nothing_is_known() -> None:
    assert starts(line("abc", "t"), {"t": 10, "a": None, "b": 1, "c": 1}, 1) == {"a": 10, "b": None, "c": None}
    assert starts(line("ab", "tu"), {"t": None, "u": 10, "a": 20, "b": 1}, 2) == {"a": 10, "b": 30}


def test_room_is_taken_at_once() -> None:
    assert starts(line("ab"), {"a": 5, "b": 5}, 1) == {"a": 0, "b": 5}
    assert starts([], {}, 1) == {}


def test_how_long_a_run_takes(queue: Queue, new_run: NewRun) -> None:
    write_settings(queue.folder, {"cores": 100})
    budget = {"amount": 90, "unit": "seconds"}
    steps = {"budget": {"amount": 7, "unit": "steps"}}

    def remaining(name: str, recipe: dict[str, object], **state: object) -> float | None:
        folder = new_run(name)
        write_json(folder.recipe, {"name": name, "execution": {"threads": 1}, **recipe})
        write_state(folder, status="running", **state)  # type: ignore[arg-type]
        turns.append(enter(folder))
        return remaining_seconds(turns[-1].ticket)

    turns: list[object] = []
    assert remaining("measured", steps, progress=0.25, seconds=10.0) == pytest.approx(30.0)
    assert remaining("unknown", steps) is None
    assert remaining("stated", {"budget": budget}, progress=0.0, seconds=0.0) == 90.0
    assert remaining("late", {"budget": budget}, progress=1.0, seconds=95.0) == 0.0
    write_state(new_run("x"), status="paused")
    assert remaining("paused", {"budget": budget}) == 90.0
    write_state(turns[-1].ticket.run, status="paused")  # type: ignore[attr-defined]
    assert remaining_seconds(turns[-1].ticket) is None, "until somebody resumes it"  # type: ignore[attr-defined]
    forecast = new_run("forecast")
    write_json(forecast.forecast, {"seconds": 33.0})
    assert remaining_seconds(enter(forecast).ticket) == 33.0
    write_json(forecast.forecast, {"seconds": "nan"})
    assert remaining_seconds(enter(forecast).ticket) is None


def test_while_a_run_prepares_nobody_knows_when_the_next_starts(queue: Queue, new_run: NewRun) -> None:
    first, second = new_run("a"), new_run("b")
    write_json(first.recipe, {"name": "reads", "budget": {"amount": 30, "unit": "seconds"}})
    turns = [enter(first), enter(second)]
    write_state(first, status="starting", message="preparing: encoding the documents")
    text = "position 1, start unknown: reads still prepares, and no one can say how long that takes"
    assert outlook(queue).places[str(second.path)].text == text
    write_state(first, message="building the model")
    assert outlook(queue).places[str(second.path)].text == "position 1, expected to start within a minute"
    for turn in turns:
        turn.leave()


def test_a_paused_run_keeps_its_turn_and_is_named(queue: Queue, new_run: NewRun) -> None:
    first, second = enter(new_run("a", status="paused")), enter(new_run("b"))
    label(first.ticket.run, name="renamed")
    text = "position 1, start unknown: renamed is paused and keeps its turn until it is resumed or stopped"
    assert outlook(queue).places[second.ticket.folder].text == text
    for turn in (first, second):
        turn.leave()


@pytest.mark.parametrize(("seconds", "said"), [(None, None), (0.0, 5), (1.2, 5), (13.0, 15), (62.0, 60), (170.0, 180)])
def test_a_start_is_expected_in_round_seconds_and_never_in_none(seconds: float | None, said: int | None) -> None:
    assert Place(1, seconds).expected_seconds == said


def test_a_run_that_waits_says_where_it_stands(queue: Queue, new_run: NewRun) -> None:
    first, second = new_run("a"), new_run("b")
    write_json(first.recipe, {"budget": {"amount": 170, "unit": "seconds"}, "execution": {"threads": 1}})
    write_state(first, status="running")
    turns = [enter(first), enter(second)]
    write_state(second, status="queued", message="waiting")
    assert place_of(second) == Place(1, 170.0)
    assert place_of(first) is None
    text = "position 1, expected to start in about 3 min"
    assert message_of(second, read_state(second), "queued") == text
    assert notice(second, running=False) == f"queued, {text}"
    row = summary(second)
    assert (row["queue_position"], row["expected_start_seconds"], row["message"]) == (1, 180, text)
    assert summary(first)["queue_position"] is None
    for turn in turns:
        turn.leave()
    assert "the process that waited for its turn is gone" in summary(second)["message"]
    write_state(second, host="elsewhere")
    assert summary(second)["message"] == "waiting", "of a queue that is not ours"


def test_whoever_shares_the_machine_hears_it(queue: Queue, new_run: NewRun) -> None:
    write_settings(queue.folder, {"cores": 2})
    turns = [enter(new_run(name), wait=False) for name in "ab"]
    assert notice(turns[1].ticket.run, running=True) == ""
    turns.append(enter(new_run("c", threads=2), wait=False))
    assert outlook().threads == 4
    said = "3 runs train here with 4 threads on 2 cores, so each is slower than forecast"
    assert notice(turns[2].ticket.run, running=True, problem="") == said
    (queue.folder / "settings.json").write_text("{")
    assert "settings" in notice(turns[2].ticket.run, running=True)
    for turn in turns:
        turn.leave()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "within a minute"), (44, "within a minute"), (46, "in about 1 min"), (170, "in about 3 min"),
     (5399, "in about 90 min"), (7200, "in about 2.0 h"), (200_000, "in about 2 days")],
)  # fmt: skip
def test_a_guess_is_rounded(seconds: float, words: str) -> None:
    assert about(seconds) == words


def said(waits: Ticket, *training: Ticket, **settings: int) -> str:
    return obstacle(waits, Outlook([*training], [waits], {}, [], QueueSettings(**settings)))


def test_cores_a_gpu_or_a_limit() -> None:
    one, trains = ticket("a"), ticket("t", owner="ann", running=True)
    assert said(one, trains, cores=1) == "it needs 1 core, and 1 of 1 are taken"
    assert said(ticket("a", threads=4), trains, cores=2) == "it needs 2 cores, and 1 of 2 are taken"
    assert said(one, trains, cores=2) == ""
    limited = said(ticket("a", owner="ann"), trains, cores=2, running_per_owner=1)
    assert limited == "1 run of ann train, as many as running_per_owner allows"
    on_gpu = ticket("g", gpus=("0",))
    assert said(on_gpu, ticket("t", gpus=("0",), gpu="0", running=True)) == "all of its 1 GPU are taken"
    assert said(on_gpu, trains, cores=1) == ""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_the_cores_of_a_queue_are_the_same_for_whoever_looks() -> None:
    allowed = os.sched_getaffinity(0)
    found = Outlook([ticket("t", cores=99, running=True)], [], {}, [], QueueSettings())
    before = found.cores
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert found.cores == before == 99
    finally:
        os.sched_setaffinity(0, allowed)
