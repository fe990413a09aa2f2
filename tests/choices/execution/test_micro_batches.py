"""Sizes of micro-batches."""

from __future__ import annotations

import pytest

from workbench.choices.execution.micro_batches import divisors


@pytest.mark.parametrize("rows", [(1,), (7,), (12,), (96,), (12, 8), (8, 12, 20), (5, 7)])
def test_every_size_that_divides_all_and_no_other(rows: tuple[int, ...]) -> None:
    found = divisors(*rows)
    assert found == [size for size in range(1, max(rows) + 1) if not any(batch % size for batch in rows)]
