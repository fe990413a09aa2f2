"""Numbers as people read them."""

from __future__ import annotations

import math

from workbench.printable import count, decimal


def test_count_of_odd_values():
    assert [count(v) for v in (None, 0.0, 999.6, 1e9, math.inf)] == ["-", "0", "1,000", "1.00B", "inf"]
    assert [decimal(v, 2) for v in (None, 1.0)] == ["-", "1.00"]
