"""Text in a random order, another one each epoch."""

from __future__ import annotations

from typing import Literal

from workbench.choices.choice import knob
from workbench.choices.data.order import Arrange, EpochPlan, shuffle, shuffled
from workbench.choices.data.orders.order import Order
from workbench.choices.data.tokens import PreparedData, TokenStore


class Shuffled(Order):
    """Documents and rows in a random order, a new one each epoch."""

    kind: Literal["shuffled"] = "shuffled"
    reshuffle: Literal["documents", "rows"] = knob(
        "documents", "shuffled anew each epoch: documents, which are then cut into other rows; or the same rows"
    )

    def arrange(self, prepared: PreparedData) -> Arrange:
        """Return the plan of an epoch, D documents in R rows."""
        return shuffle if self.reshuffle == "documents" else _same_rows


def _same_rows(store: TokenStore, sequence_length: int, seed: int, epoch: int) -> EpochPlan:
    """Plan an epoch of the first epoch's rows, permuted anew."""
    order_D = shuffled(seed, 0, 0, store.documents)
    return EpochPlan.of(store, order_D, shuffled(seed, epoch, 1, store.tokens // sequence_length))
