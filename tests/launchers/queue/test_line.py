"""Whose turn it is: priorities, owners in turn, nobody overtaken, limits, cores and GPUs."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from workbench.launchers.queue.line import entered, in_line, next_of, training
from workbench.launchers.queue.settings import QueueSettings
from workbench.launchers.queue.ticket import Ticket


def ticket(name: str, number: int = 0, **fields: object) -> Ticket:
    return Ticket(folder=f"/runs/{name}", name=name, number=number, **fields)  # type: ignore[arg-type]


def startable(tickets: list[Ticket], settings: QueueSettings) -> list[tuple[Ticket, str]]:
    return next_of(training(tickets), in_line(tickets), settings)


def names(tickets: list[Ticket]) -> str:
    return "".join(each.name for each in tickets)


def starting(tickets: list[Ticket], **settings: int) -> str:
    return names([each for each, _ in startable(tickets, QueueSettings(**settings))])


def test_two_of_one_thread_train_on_two_cores_and_a_third_waits() -> None:
    line = [ticket(name, number) for number, name in enumerate("abc")]
    assert starting(line, cores=2) == "ab"
    assert starting([ticket("a", running=True), *line[1:]], cores=2) == "b"
    assert starting([ticket("a", running=True), ticket("b", running=True), line[2]], cores=2) == ""


def test_each_counts_the_cores_of_its_own_process_whoever_looks() -> None:
    trains = ticket("t", running=True, cores=2)
    assert starting([trains, ticket("a", 1, cores=2)]) == "a"
    assert starting([trains, ticket("a", 1, cores=1)]) == "", "bound to one core, which may be the one in use"
    assert starting([trains, ticket("a", 1, cores=1)], cores=2) == "a", "set for all"


def enter(line: list[Ticket], owners: str, **fields: object) -> list[Ticket]:
    """A line that these owners' tickets have entered, each named for its owner and count."""
    for owner in owners:
        count = sum(each.owner == owner for each in line)
        line = [*line, entered(ticket(f"{owner}{count}", owner=owner, **fields), line)]
    return line


def served(line: list[Ticket]) -> list[str]:
    """Return who trains after whom, on one core."""
    order = []
    while line:
        line = [each for each in line if not each.running]
        for first, _ in startable(line, QueueSettings(cores=1)):
            order.append(first.name)
            line = [replace(each, running=each is first) for each in line]
    return order


def test_owners_take_turns_and_their_own_runs_keep_their_order() -> None:
    assert served(enter([], "aaaabb")) == ["a0", "b0", "a1", "b1", "a2", "a3"]
    training = [replace(each, running=True) for each in enter([], "a")]
    line = enter(training, "aabbc")
    assert names(in_line(line)).startswith("b0"), "what ann has had counts"
    assert served(line) == ["b0", "c0", "a1", "b1", "a2"]


def test_who_comes_late_begins_in_the_round_that_runs() -> None:
    line = enter([], "aaaa")
    line = [replace(line[2], running=True), line[3]]
    assert served(enter(line, "bb")) == ["b0", "a3", "b1"]
    assert served(enter([line[1]], "b")) == ["a3", "b0"], "nobody trains: who waits longest goes first"


def test_anybody_may_write_a_name_but_a_turn_is_the_users() -> None:
    line = enter([], "aaa", uid=1)
    other = entered(ticket("x", owner="a", uid=2), line)
    assert served([*line, other]) == ["a0", "x", "a1", "a2"]


def test_priority_comes_first_and_then_the_number() -> None:
    line = [ticket("a", 0), ticket("b", 1, priority=5), ticket("c", 2, priority=-1), ticket("d", 3)]
    assert names(in_line(line)) == "badc"


def test_who_needs_more_than_is_free_is_not_overtaken() -> None:
    line = [ticket("t", threads=1, running=True), ticket("a", 1, threads=2), ticket("b", 2)]
    assert starting(line, cores=2) == "", "b would keep a waiting for ever"
    assert starting(line[1:], cores=2) == "a"


def test_who_asks_for_more_than_there_is_gets_all_of_it() -> None:
    assert starting([ticket("a", threads=64)], cores=2) == "a"
    assert starting([ticket("t", running=True), ticket("a", threads=64)], cores=2) == ""
    assert starting([ticket("t", threads=64, running=True), ticket("a")], cores=2) == ""


def test_a_limit_of_one_owner_holds_up_nobody_else() -> None:
    line = [ticket(name, number, owner=name.lower()) for number, name in enumerate("aAb")]
    assert starting(line, cores=8, running_per_owner=1) == "ab"


def test_one_run_per_gpu_and_cores_are_another_matter() -> None:
    gpus = ("0", "1")
    line = [ticket(name, number, gpus=gpus, threads=8) for number, name in enumerate("abc")] + [ticket("x", 3)]
    found = startable(line, QueueSettings(cores=1))
    assert [(each.name, gpu) for each, gpu in found] == [("a", "0"), ("b", "1"), ("x", "")]
    taken = ticket("t", gpus=gpus, gpu="0", running=True)
    assert startable([taken, line[0]], QueueSettings(cores=1)) == [(line[0], "1")]
    other = [taken, ticket("a", gpus=("0",)), ticket("b", gpus=("0", "1")), ticket("c", gpus=("0",))]
    assert starting(other, cores=1) == "b"
    assert starting(other, cores=1, runs_per_gpu=2) == "ab"


def test_the_dead_neither_train_nor_wait() -> None:
    assert starting([ticket("t", running=True, alive=False), ticket("a", alive=False), ticket("b")], cores=1) == "b"


def test_only_those_on_whom_it_depends_are_asked_whether_they_are_there() -> None:
    line = [ticket(f"{number}", number, threads=1 + number) for number in range(100)]
    asked: list[str] = []

    def holds(each: Ticket) -> bool:
        asked.append(each.name)
        return each.name != "0"

    found = next_of([], line, QueueSettings(cores=3), holds)
    assert ([each.name for each, _ in found], asked) == (["1"], ["0", "1", "2"])


TICKETS = st.lists(
    st.builds(
        Ticket,
        folder=st.uuids().map("/runs/{}".format),
        owner=st.sampled_from("ab"),
        threads=st.integers(1, 5),
        gpus=st.sampled_from([(), (), ("0",), ("0", "1")]),
        priority=st.integers(-1, 1),
        round=st.integers(0, 2),
        number=st.integers(0, 9),
        alive=st.booleans(),
    ),
    max_size=12,
)


@given(TICKETS, st.integers(1, 4), st.integers(1, 2), st.none() | st.integers(1, 2))
def test_never_more_than_there_is_and_never_idle(
    line: list[Ticket], cores: int, per_gpu: int, limit: int | None
) -> None:
    settings = QueueSettings(cores=cores, runs_per_gpu=per_gpu, running_per_owner=limit)
    found = startable(line, settings)
    assert sum(min(each.threads, cores) for each, _ in found if not each.gpus) <= cores
    for gpu in "01":
        assert sum(taken == gpu for _, taken in found) <= per_gpu
    assert all(gpu in each.gpus if each.gpus else gpu == "" for each, gpu in found)
    assert all(each.alive for each, _ in found)
    assert bool(found) == any(each.alive for each in line), "a machine on which nothing trains has room for the first"
    assert sorted(map(id, in_line(line))) == sorted(id(each) for each in line if each.alive)
