"""Examples to train, to choose and to test on."""

from __future__ import annotations

import pytest

from workbench.base.errors import DataError
from workbench.choices.tasks.files import Example
from workbench.choices.tasks.splits import divide, labels_of


def made(split: str, count: int, first: int = 0) -> list[Example]:
    """Questions about passages that three of them share."""
    return [Example(str(n), split, (f"q{n}", f"p{n // 3}"), str(n % 2)) for n in range(first, first + count)]


@pytest.mark.parametrize("name", ["all", "dev"])
def test_one_part_is_divided_by_what_examples_share(name: str) -> None:
    found = divide(made(name, 300))
    assert {part: len(each) for part, each in found.items()} == {"train": 216, "dev": 24, "test": 60}
    passages = [{each.texts[1] for each in part} for part in found.values()]
    assert not passages[0] & passages[1] | passages[0] & passages[2] | passages[1] & passages[2]
    # By their own texts: whatever else is there, these go where they went.
    again = divide(made(name, 300)[::-1])
    assert {each.id for each in again["test"]} == {each.id for each in found["test"]}


def test_parts_that_files_name_are_kept() -> None:
    named = [*made("train", 90), *made("dev", 9, 90), *made("test", 12, 99)]
    assert [len(each) for each in divide(named).values()] == [90, 9, 12]
    # Nobody but the official test may choose on it: the dev part of two is the test.
    two = divide([*made("train", 90), *made("dev", 9, 90)])
    assert {each.id for each in two["test"]} == {str(n) for n in range(90, 99)}
    assert len(two["dev"]) == 9
    assert {each.split for each in two["dev"]} == {"train"}


def test_labels_in_their_order_and_what_training_never_shows() -> None:
    of = {label: Example("", "train", ("a",), label) for label in ("10", "9", "x", "y")}
    assert labels_of([of["10"], of["9"]], [of["9"]]) == ("9", "10")
    with pytest.raises(DataError, match="labels never seen in training: x, y; training has 9, 10"):
        labels_of([of["10"], of["9"]], [of["x"], of["y"]])
    with pytest.raises(DataError, match="nothing to learn"):
        labels_of([of["9"]], [])
    with pytest.raises(DataError, match="2 examples: too few"):
        divide(made("all", 2))
