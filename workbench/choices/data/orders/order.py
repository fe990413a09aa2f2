"""Base of the orders: a plan for each epoch of a text."""

from __future__ import annotations

from typing import ClassVar

from workbench.choices.choice import Choice
from workbench.choices.data.order import Arrange
from workbench.choices.data.tokens import PreparedData


class Order(Choice):
    """Base of the orders. Every order is a pure function of (seed, sample index): no run keeps a state of it."""

    axis: ClassVar[str] = "order"
    provides: ClassVar[tuple[str, ...]] = ("arrange",)

    @property
    def reference(self) -> tuple[str, int | None] | None:
        """Return run and step of the model whose losses of documents the order goes by; None for none."""
        return None

    def unread(self, tokens: float, text_tokens: int | None) -> str:
        """Return what a run of so many tokens will not read of the text, or not long; empty where there is nothing.

        Args:
            text_tokens: of the training text; None where unknown.
        """
        return ""

    def arrange(self, prepared: PreparedData) -> Arrange:
        """Return the function that plans an epoch of the training split, D documents in R rows.

        Raises:
            DataError: the prepared text lacks what the order goes by.
        """
        raise NotImplementedError
