"""Spaces: values and ranges as people write them, knobs that belong to a choice, and every refusal in one message."""

from __future__ import annotations

from typing import Any

import pytest

from workbench import presets
from workbench.base.errors import RecipeError
from workbench.experiments.sweep.space import Knob, applied, combinations, label, read_values, size, space_of

FAST = presets.fast()


def test_ranges_are_as_their_knobs_are_declared() -> None:
    space = space_of(
        {"optimizer.lr": "1e-4..1e-2", "architecture.layers": "1..8", "optimizer.weight_decay": "0..0.1",
         "optimizer.eps": "1e-9 .. 1e-7 linear"}, FAST,
    )  # fmt: skip
    assert space["optimizer.lr"] == Knob(low=1e-4, high=1e-2, log=True)
    assert space["architecture.layers"] == Knob(low=1, high=8, whole=True)
    assert space["optimizer.weight_decay"] == Knob(low=0, high=0.1)
    assert not space["optimizer.eps"].log
    assert space["architecture.layers"].number(3.4) == 3
    assert space["optimizer.lr"].number(0.00123456) == 0.001235
    assert space["optimizer.lr"].number(1) == 0.01
    assert size(space) is None


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ({"optimizer.rl": [1]}, "did you mean 'lr'"),
        ({"optimizer.lr": [-1]}, "optimizer.lr: must be greater than 0, got -1"),
        ({"depth.theta": [0.5]}, "not a knob of 'full' but of 'progressive_drop', chosen by depth=progressive_drop"),
        ({"depth.kind": ["full", "progressive_drop"], "depth.theta": [7]}, "less than or equal to 1, got 7"),
        ({"optimizer.lr": "1e-2..1e-4"}, "is no range; write '1e-4..1e-2', low before high"),
        ({"optimizer.lr": "0..1e-2 log"}, "a logarithmic range begins above 0"),
        ({"optimizer.lr": 1e-3}, "give a list of values, or a range"),
        ({"optimizer.lr": [1e-3, 1e-3]}, "a value stands there twice"),
        ({"seed": [0, 1]}, "give the sweep's seeds instead"),
        ({"name": ["a"]}, "a point is named after its values"),
        ({}, "a sweep needs a space"),
    ],
)  # fmt: skip
def test_what_no_point_can_have_is_refused(space: Any, said: str) -> None:
    with pytest.raises(RecipeError, match="(?s).*" + said.replace("(", r"\(")):
        space_of(space, FAST)


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(RecipeError) as error:
        space_of({"optimizer.rl": [1], "depth.kind": ["fully", "full"], "optimizer.lr": [0]}, FAST)
    assert len(str(error.value).splitlines()) == 3


def test_a_value_that_only_some_combinations_allow_is_legal() -> None:
    # Six heads do not divide a width of 256.
    space = {"architecture.heads": [4, 6], "architecture.width": [256, 384]}
    assert size(space_of(space, FAST)) == 4
    with pytest.raises(RecipeError):
        space_of({"architecture.heads": [4, 6]}, FAST)


def test_a_knob_that_a_choice_does_not_have_is_left_out_there() -> None:
    space = space_of({"depth.theta": [0.3, 0.5], "depth.kind": ["full", "progressive_drop"]}, FAST)
    found = [applied(FAST, values) for values in combinations(space)]
    assert [each.values for each in found] == [
        {"depth.kind": "full"}, {"depth.theta": 0.3, "depth.kind": "progressive_drop"},
        {"depth.kind": "full"}, {"depth.theta": 0.5, "depth.kind": "progressive_drop"},
    ]  # fmt: skip
    assert [each.recipe.depth.kind for each in found] == ["full", "progressive_drop"] * 2
    assert label(found[1].values) == "theta=0.3, depth=progressive_drop"


def test_axes_may_be_named_without_kind() -> None:
    space = space_of({"depth": ["full", "progressive_drop"], "depth.theta": [0.3]}, FAST)
    assert applied(FAST, {"depth": "full", "depth.theta": 0.3}).values == {"depth": "full"}
    assert list(combinations(space))[1] == {"depth": "progressive_drop", "depth.theta": 0.3}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1e-3,2e-3", [0.001, 0.002]),
        ("full,progressive_drop", ["full", "progressive_drop"]),
        ('["full", "raptr"]', ["full", "raptr"]),
        ("1e-4..1e-2", "1e-4..1e-2"),
        ("true,false", [True, False]),
        ("3", [3]),
        ('{"kind": "linear"}', [{"kind": "linear"}]),
    ],
)
def test_values_of_a_command_line(text: str, values: Any) -> None:
    assert read_values(text, "x") == values
