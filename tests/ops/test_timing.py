"""Slow moments of a machine that is not there: the right candidate wins, by the right seconds; and a small real one."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
import torch

from workbench.ops.timing import LEAST_ROUNDS, ROUNDS, Sample, clock_of, measure, timed

CPU = torch.device("cpu")


class Machine:
    """Two clocks that only work and stalls move.

    Args:
        slow: by how much work is stretched, from its name, the number of its call and the wall clock.
        stall: seconds of the wall alone, on top, from the same.
    """

    def __init__(
        self,
        slow: Callable[[str, int, float], float] = lambda name, call, wall: 1.0,
        stall: Callable[[str, int, float], float] = lambda name, call, wall: 0.0,
    ) -> None:
        self.cpu = self.wall = 0.0
        self.calls: dict[str, int] = {}
        self._slow, self._stall = slow, stall

    def work(self, name: str, seconds: float) -> Sample:
        """A candidate that takes ``seconds`` when nothing disturbs it."""

        def run() -> None:
            call = self.calls[name] = self.calls.get(name, 0) + 1
            took = seconds * self._slow(name, call, self.wall)
            self.cpu += took
            self.wall += took + self._stall(name, call, self.wall)

        return timed(run, CPU, lambda: self.cpu)

    def measure(self, **seconds: float) -> dict[str, float]:
        """Seconds by candidate, as measured."""
        found = measure({name: self.work(name, each) for name, each in seconds.items()}, wall=lambda: self.wall)
        return {name: timing.seconds for name, timing in found.items()}


TRUE = {"a": 0.010, "b": 0.014}
_drawn = random.Random(0)
SLOW: dict[str, Callable[[str, int, float], float]] = {
    "never": lambda name, call, wall: 1.0,
    "the first candidate in its first 12 rounds": lambda name, call, wall: 7.0 if name == "a" and call <= 12 else 1.0,
    "everything in the first second": lambda name, call, wall: 3.0 if wall < 1.0 else 1.0,
    "60% of all readings": lambda name, call, wall: 4.0 if _drawn.random() < 0.6 else 1.0,
    "the better one in 60% of its readings": lambda name, call, wall: (
        4.0 if name == "a" and _drawn.random() < 0.6 else 1.0
    ),
    "the second half of the time": lambda name, call, wall: 5.0 if wall > 1.0 else 1.0,
    "stretches of seven rounds": lambda name, call, wall: 2.0 if call // 7 % 2 else 1.0,
}


@pytest.mark.parametrize("slow", SLOW.values(), ids=SLOW)
def test_slow_moments_change_neither_the_winner_nor_the_seconds(slow: Callable[[str, int, float], float]) -> None:
    _drawn.seed(0)
    assert Machine(slow).measure(**TRUE) == pytest.approx(TRUE, rel=0.03)


def test_a_stall_of_the_wall_is_not_the_threads_time() -> None:
    machine = Machine(stall=lambda name, call, wall: 0.2 if name == "a" else 0.0)
    assert machine.measure(**TRUE) == pytest.approx(TRUE)
    assert machine.calls["a"] < 25, "the limit is the wall's: nobody waits for a machine that stands still"


def test_halves_that_do_not_agree_are_told() -> None:
    # Ever slower: no half is like the one before.
    machine = Machine(lambda name, call, wall: 1.2**call)
    found = measure({"a": machine.work("a", 1e-3)}, wall=lambda: machine.wall)["a"]
    assert not found.settled
    assert found.disagreement > 0.05
    assert machine.wall == pytest.approx(3.0, rel=0.3), "it ends at the limit"


def test_what_settles_at_once_ends_at_once_and_what_is_slow_is_taken_a_few_times() -> None:
    machine = Machine()
    assert measure({"a": machine.work("a", 0.1)}, wall=lambda: machine.wall)["a"].settled
    assert machine.calls["a"] == ROUNDS + 1
    assert Machine().measure(a=60.0) == {"a": pytest.approx(60.0)}
    machine = Machine()
    machine.measure(a=60.0)
    assert machine.calls["a"] == LEAST_ROUNDS + 1


def test_each_part_has_a_quantile_of_its_own() -> None:
    drawn = random.Random(0)

    def parts() -> list[float]:
        return [seconds * (5 if drawn.random() < 0.5 else 1) for seconds in (1.0, 2.0, 3.0)]

    found = measure({"step": parts}, rounds=50, least_seconds=0.0, limit_seconds=0.1)["step"]
    assert found.parts == pytest.approx((1.0, 2.0, 3.0))
    assert found.seconds == pytest.approx(6.0)


def _burn(seconds: float) -> None:
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        pass


def test_on_the_real_clock_of_this_thread() -> None:
    """Work that is defined by that clock, so the machine's speed does not matter; stalls and slow rounds added."""
    calls = {"a": 0, "b": 0}

    def work(name: str, seconds: float) -> Callable[[], None]:
        def run() -> None:
            calls[name] += 1
            _burn(seconds * (6 if name == "a" and calls[name] <= 12 else 1))
            if calls[name] % 5 == 0:
                time.sleep(0.002)

        return run

    found = measure({"a": timed(work("a", 0.001), CPU), "b": timed(work("b", 0.002), CPU)}, limit_seconds=5.0)
    assert found["a"].seconds == pytest.approx(0.001, rel=0.1)
    assert found["b"].seconds == pytest.approx(0.002, rel=0.1)


def test_several_threads_go_by_the_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert clock_of(CPU) is time.perf_counter
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert clock_of(CPU) is time.thread_time
    assert clock_of(torch.device("cuda")) is time.perf_counter
