"""Boundaries of stages and the warm-up inside them."""

from __future__ import annotations

import pytest

from workbench.choices.depth.plan import Depth
from workbench.choices.depth.staging import starts_of
from workbench.choices.progress import Budget, Progress


def at(step: int, steps: int = 100) -> Progress:
    return Progress(step, 0, 0.0, Budget(amount=steps))


def test_starts_are_shares_of_the_whole() -> None:
    assert starts_of((50, 70, 280)) == (0.0, 0.125, 0.3)
    assert starts_of((2,)) == (0.0,)


def test_warm_up_begins_again_in_every_stage_but_the_first() -> None:
    class Staged(Depth):
        rewarm: float = 0.1

        def starts(self) -> tuple[float, ...]:
            return (0.0, 0.4, 0.8)

    again, never = Staged(), Staged(rewarm=0.0)
    steps = (0, 39, 40, 42, 44, 60, 81)
    assert [again.rate_factor(4, at(step)) for step in steps] == pytest.approx([1, 1, 0, 0.5, 1, 1, 0.5])
    assert all(never.rate_factor(4, at(step)) == 1.0 for step in range(100))


@pytest.mark.parametrize("steps", [7, 20, 100, 333])
def test_a_stage_begins_at_the_first_step_that_has_reached_its_share(steps: int) -> None:
    class Thirds(Depth):
        def starts(self) -> tuple[float, ...]:
            return starts_of((0.1, 0.1, 0.1))

    for step in range(steps):
        exact = sum(step * 3 >= third * steps for third in (1, 2))
        assert Thirds().stage(4, at(step, steps)) == exact


def test_methods_without_stages_stay_in_the_first() -> None:
    assert Depth().starts() == (0.0,)
    assert {Depth().stage(4, at(step)) for step in range(100)} == {0}
    assert Depth().rate_factor(4, at(5)) == 1.0
