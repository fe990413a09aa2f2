"""Numbers as people read them."""

from __future__ import annotations

import io
import math
import sys

import pytest

from workbench.base.text import count, decimal, escape_unprintable, facts_html, share_done


def test_count_of_odd_values():
    assert [count(v) for v in (None, 0.0, 999.6, 1e9, math.inf)] == ["-", "0", "1,000", "1.00B", "inf"]
    assert [decimal(v, 2) for v in (None, 1.0)] == ["-", "1.00"]


def test_a_share_is_rounded_down_so_that_nothing_is_done_before_its_end():
    shares = {0: "0%", 0.00996: "0.99%", 0.0123: "1%", 0.168: "16%", 0.29: "29%", 0.9999: "99%", 1: "100%"}
    assert {share: share_done(share) for share in shares} == shares
    assert share_done(math.nan) == "-"


def test_facts_are_escaped_and_empty_ones_left_out():
    table = facts_html({"name": "<b>mine</b>", "error": "", "log": "one\x1b[1m\ntwo"})
    assert "&lt;b&gt;mine&lt;/b&gt;" in table
    assert "error" not in table
    assert "one [1m\ntwo" in table


def test_what_an_encoding_cannot_say_is_printed_as_an_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finished run of the name é ended with exit code 1 where stdout was ASCII."""
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    with pytest.raises(UnicodeEncodeError):
        print("é")
    escape_unprintable()
    print("é", flush=True)
    assert sys.stdout.buffer.getvalue() == b"\\xe9\n"  # type: ignore[attr-defined]
