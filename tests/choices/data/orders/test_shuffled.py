"""Documents cut anew each epoch, or the same rows."""

from __future__ import annotations

import numpy as np

from tests.choices.data.orders.slow import prepared_of, rows_of
from workbench.choices.data import Embedded
from workbench.choices.data.order import RowOrder, shuffled
from workbench.choices.data.orders import Shuffled

DOCUMENTS = [[10 + number] * (3 + number % 7) for number in range(40)]


def epoch_of(order: RowOrder, epoch: int) -> list[list[int]]:
    return order.batch(np.arange(epoch * order.rows, (epoch + 1) * order.rows)).tokens_BT.tolist()


def test_rows_stay_and_are_read_in_another_order_each_epoch() -> None:
    order = Embedded(sequence_length=8, order=Shuffled(reshuffle="rows")).row_order(prepared_of(DOCUMENTS), 5)
    packed = rows_of(DOCUMENTS, shuffled(5, 0, 0, len(DOCUMENTS)).tolist(), 8)
    first, second = epoch_of(order, 0), epoch_of(order, 1)
    assert first != second
    assert sorted(first) == sorted(second) == sorted(packed)


def test_by_default_documents_are_cut_anew_as_before_there_were_orders() -> None:
    prepared = prepared_of(DOCUMENTS)
    order = Embedded(sequence_length=8).row_order(prepared, 5)
    assert [epoch_of(order, epoch) for epoch in range(3)] == [
        epoch_of(RowOrder(prepared.train, 8, 5), epoch) for epoch in range(3)
    ]
    assert sorted(epoch_of(order, 0)) != sorted(epoch_of(order, 1))
