"""Batches of users' loaders: counted, cut, and found again."""

from __future__ import annotations

import itertools
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

from workbench.accelerated.batches import OwnBatch, OwnSteps, check_loader, epoch_of
from workbench.base.errors import DataError
from workbench.training.batches import StepShape

Pair = namedtuple("Pair", "x y")
SHAPE = StepShape(4, 1, 4)


def test_tokens_rows_and_labels_are_counted() -> None:
    ids = torch.ones(3, 4, dtype=torch.long)
    mask = torch.tensor([[1, 1, 0, 0]] * 3)
    assert OwnBatch.of({"input_ids": ids}) == OwnBatch({"input_ids": ids}, 3, 12, 3)
    batch = OwnBatch.of({"input_ids": ids + 1, "attention_mask": mask, "labels": mask * 101 - 100})
    assert (batch.rows, batch.tokens, batch.count) == (3, 6, 6)
    # A causal model, whose labels are its ids, is not asked for the first token of a row.
    batch = OwnBatch.of({"input_ids": ids, "attention_mask": mask, "labels": mask * 101 - 100})
    assert (batch.rows, batch.tokens, batch.count) == (3, 6, 3)
    batch = OwnBatch.of((torch.ones(5, 2), torch.ones(5)))
    assert (batch.rows, batch.tokens, batch.count) == (5, 5, 5)
    assert OwnBatch.of("text").rows == 1


def test_micro_batches_keep_the_form_and_share_what_has_no_rows() -> None:
    content = {"pair": Pair(torch.arange(5), [torch.arange(10).view(5, 2)]), "weight": torch.ones(3), "name": "a"}
    parts = OwnBatch.of(content).parts(2)
    assert [part.rows for part in parts] == [2, 2, 1]
    assert [part.content["pair"].x.tolist() for part in parts] == [[0, 1], [2, 3], [4]]
    assert parts[2].content["pair"].y[0].tolist() == [[8, 9]]
    assert all(len(part.content["weight"]) == 3 and part.content["name"] == "a" for part in parts)


class Drawn(IterableDataset):
    """Noise that is drawn as it is read."""

    def __iter__(self) -> Iterator[Any]:
        for _ in range(10):
            yield torch.rand(())


def loaders() -> dict[str, Any]:
    generator = torch.Generator()
    return {
        "a list": [torch.full((4,), float(number)) for number in range(3)],
        "shuffled": DataLoader(torch.arange(10.0), batch_size=4, shuffle=True),
        "with a generator of its own": DataLoader(torch.arange(10.0), batch_size=4, shuffle=True, generator=generator),
        "drawn": DataLoader(Drawn(), batch_size=4),
    }


@pytest.mark.parametrize("kind", loaders())
@pytest.mark.parametrize("read", [0, 1, 3, 5])
def test_batches_go_on_where_they_were(kind: str, read: int) -> None:
    def take(steps: OwnSteps, first: int, count: int) -> list[list[float]]:
        found = []
        for step in range(first, first + count):
            torch.manual_seed(step)  # as the loop does
            found.append(steps.next(0, SHAPE).parts[0].content.tolist())
        return found

    straight = take(OwnSteps(loaders()[kind], seed=3), 0, 8)
    begun = OwnSteps(loaders()[kind], seed=3)
    assert take(begun, 0, read) == straight[:read]
    position = begun.state()
    torch.rand(7)
    assert take(OwnSteps(loaders()[kind], 3, position), read, 8 - read) == straight[read:]
    if kind == "shuffled":
        epochs = [sorted(itertools.chain(*straight[first : first + 3])) for first in (0, 3)]
        assert epochs == [list(range(10))] * 2
        assert straight[:3] != straight[3:6], "each epoch has an order of its own"


def test_an_epoch_leaves_the_draws_of_the_step_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    epoch_of(DataLoader(torch.arange(10.0), shuffle=True), 0, 1)
    assert torch.equal(torch.rand(3), expected)


def test_a_shorter_loader_cannot_go_on() -> None:
    with pytest.raises(DataError, match="ends after 2 batches, and the run has read 3 of epoch 1"):
        OwnSteps([1, 2], 0, {"epoch": 0, "read": 3}).next(0, SHAPE)


@pytest.mark.parametrize("loader", [iter([1]), (number for number in range(3)), 3])
def test_what_can_be_read_once_is_refused(loader: Any) -> None:
    with pytest.raises(DataError, match="give a DataLoader or a list of batches"):
        check_loader(loader, "loader")
