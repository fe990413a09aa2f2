"""Numbers as people read them."""

from __future__ import annotations

import math

from workbench.printable import count, decimal, facts_html


def test_count_of_odd_values():
    assert [count(v) for v in (None, 0.0, 999.6, 1e9, math.inf)] == ["-", "0", "1,000", "1.00B", "inf"]
    assert [decimal(v, 2) for v in (None, 1.0)] == ["-", "1.00"]


def test_facts_are_escaped_and_empty_ones_left_out():
    table = facts_html({"name": "<b>mine</b>", "error": "", "log": "one\x1b[1m\ntwo"})
    assert "&lt;b&gt;mine&lt;/b&gt;" in table
    assert "error" not in table
    assert "one [1m\ntwo" in table
