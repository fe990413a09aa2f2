"""Phases against their parts evaluated by hand, at and beside every boundary."""

from __future__ import annotations

import math
from typing import Any

import pytest

from workbench.choices.choice import registry
from workbench.choices.schedules import Linear, Phases, Schedule, WarmupHoldDecay
from workbench.recipes.recipe import Recipe

LANS = Phases(
    parts=(WarmupHoldDecay(warmup=0.4265, hold=0.2735), WarmupHoldDecay(warmup=0.192, hold=0.108)),
    peaks=(6.75e-3, 5e-3),
    until=(3519,),
    length=4301,
    over="steps",
)


def test_the_two_phases_of_lans_step_by_step() -> None:
    """Each phase by its own formula: a rise of w T steps, a plateau of h T, a line to 0."""

    def rate(step: int, steps: int, eta: float, warmup: float, hold: float) -> float:
        if step < warmup * steps:
            return eta * step / (warmup * steps)
        if step <= (warmup + hold) * steps:
            return eta
        return eta * (steps - step) / (steps - (warmup + hold) * steps)

    for step in range(4302):
        first = step < 3519
        expected = rate(step, 3519, 6.75e-3, 0.4265, 0.2735) if first else rate(step - 3519, 782, 5e-3, 0.192, 0.108)
        assert LANS.value(step) == pytest.approx(expected, abs=1e-12), step
    assert LANS.extremes() == (0.0, 6.75e-3)


def test_boundaries_belong_to_the_phase_that_begins() -> None:
    shape = Phases(parts=(Linear(start=1, end=0.5),) * 3, peaks=(1.0, 10.0, -4.0), until=(0.25, 0.75), length=1.0)
    just_before = math.nextafter(0.25, 0)
    assert shape.value(0) == 1.0
    assert shape.value(just_before) == pytest.approx(0.5)
    assert shape.value(0.25) == 10.0
    assert shape.value(0.5) == pytest.approx(7.5)
    assert shape.value(0.75) == -4.0
    assert shape.value(1.0) == shape.value(3.0) == -2.0
    assert shape.extremes() == (-4.0, 10.0)


@pytest.mark.parametrize("kind", registry("schedule"))
def test_one_phase_of_any_shape_is_that_shape(kind: str) -> None:
    part = registry("schedule")[kind]()
    assert isinstance(part, Schedule)
    alone = Phases(parts=(part,), peaks=(2.0,), until=(), length=10.0, over="seconds")
    for x in range(31):
        assert alone.value(x) == pytest.approx(2 * part.value(min(1.0, x / 10)))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"peaks": (1.0,)}, "2 parts need 2 `peaks`, got 1"),
        ({"until": ()}, "2 parts need 1 boundaries in `until`, got 0"),
        ({"until": (0.0,)}, r"must rise strictly from 0 to length 1, got \[0\.0\]"),
        ({"until": (1.0,)}, "must rise strictly from 0 to length 1"),
        ({"parts": ()}, "at least 1 item"),
        ({"parts": (Linear(over="steps"), Linear())}, r"parts\[0\] counts steps, but a part's lengths are shares"),
        ({"parts": ("liner", "linear")}, "did you mean 'linear'"),
        ({"length": 0}, "greater than 0"),
    ],
)
def test_phases_that_do_not_fit(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Phases(**fields)


def test_phases_within_phases_survive_json_in_a_recipe() -> None:
    inner = Phases(parts=("linear", "cosine"), peaks=(1.0, 0.5), until=(0.5,))
    recipe = Recipe(
        optimizer={"kind": "lans", "schedule": Phases(parts=(inner, "one_cycle"), peaks=(1, 1), until=(0.9,))}
    )
    again = Recipe.from_json(recipe.to_json())
    assert again == recipe
    assert again.hash == recipe.hash
    assert again.optimizer.schedule.parts[0].parts[1].kind == "cosine"


def test_a_rate_that_a_phase_would_turn_negative_is_refused() -> None:
    with pytest.raises(ValueError, match="learning rate must be >= 0"):
        Recipe(optimizer={"kind": "adamw", "schedule": Phases(peaks=(1.0, -0.5))})
