"""Examples to train on, to choose on and to test on."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from workbench.base.errors import DataError
from workbench.base.text import many
from workbench.choices.tasks.files import EVERYTHING, Example

DEV, TEST = 10, 5
"""One group in so many of the training examples is to choose on; one in so many of all is the test."""


def divide(examples: Sequence[Example]) -> dict[str, list[Example]]:
    """Return the examples of ``train``, ``dev`` and ``test``.

    Splits that the files have are kept. Of two, one to train on and another, the other is the test, and one group in
    ten of the training examples is ``dev``. Of one alone, one group in five is the test first. A group is an article,
    or a text that several examples share: none is in two of the splits that are made here. Which group goes where
    depends on its own text and on nothing else.

    Raises:
        DataError: too few examples for three splits.
    """
    found: dict[str, list[Example]] = defaultdict(list)
    for each in examples:
        found[each.split].append(each)
    train, dev, test = (found.get(name, []) for name in ("train", "dev", "test"))
    rest = found.get(EVERYTHING, [])
    if not train:
        # A single part, whatever it is called, is divided.
        train = rest or dev or test
        dev, test = ([] if part is train else part for part in (dev, test))
    if not test:
        test, dev = dev, []
    if not test:
        test, train = _part(train, TEST)
    if not dev:
        dev, train = _part(train, DEV)
    if not (train and dev and test):
        raise DataError(f"{many(len(examples), 'example')}: too few to train, to choose and to test on")
    return {"train": train, "dev": dev, "test": test}


def _part(examples: list[Example], share: int) -> tuple[list[Example], list[Example]]:
    """Take one group in ``share`` away; returns the examples of those groups, and the others."""
    key = _grouping(examples)
    groups = sorted({key(each) for each in examples}, key=lambda text: hashlib.sha1(text.encode()).hexdigest())
    taken = set(groups[: round(len(groups) / share)])
    return [each for each in examples if key(each) in taken], [each for each in examples if key(each) not in taken]


def _grouping(examples: list[Example]):  # type: ignore[no-untyped-def]
    """Return what tells the group of an example: its own, else the text that most of them share."""
    if any(each.group for each in examples):
        return _group
    texts = range(len(examples[0].texts)) if examples else ()
    shared = min(texts, key=lambda place: len({each.texts[place] for each in examples}), default=0)
    return lambda each: each.texts[shared]


def _group(example: Example) -> str:
    return example.group or " ".join(example.texts)


def labels_of(train: Sequence[Example], others: Sequence[Example]) -> tuple[str, ...]:
    """Return the classes of the training examples, numbers in their order, else by alphabet.

    Raises:
        DataError: one class alone, or one among the others that training never shows.
    """
    counted = {each.label for each in train}
    whole = all(label.lstrip("-").isdigit() for label in counted)
    labels = sorted(counted, key=(lambda label: (int(label), label)) if whole else str)
    if unseen := sorted({each.label for each in others} - counted):
        raise DataError(
            f"labels never seen in training: {', '.join(unseen[:5])}{', ...' if len(unseen) > 5 else ''}; training has "
            f"{', '.join(labels[:20])}"
        )
    if len(labels) < 2:
        raise DataError(
            f"all training examples have the label {', '.join(labels) or 'of none'}: there is nothing to learn"
        )
    return tuple(labels)
