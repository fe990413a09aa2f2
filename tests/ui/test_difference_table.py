"""The table of differences: short texts in the cells, whole values behind them, one request per click."""

from __future__ import annotations

from tests.ui.messages import say
from workbench.ui.difference_table import DifferenceTable
from workbench.ui.differences import Difference


def test_rows_are_short_text_and_whole_values() -> None:
    table = DifferenceTable(lambda path: None)
    table.show("preset fast", [Difference("notes", "<b>" * 100, None), Difference("optimizer", {"kind": "lans"}, "x")])
    assert table.there == "preset fast"
    assert [row["path"] for row in table.rows] == ["notes", "optimizer"]
    assert len(table.rows[0]["here"]) <= 60
    assert table.rows[0]["there"] == "none"
    assert len(table.rows[0]["here_full"]) > 300
    assert table.rows[1] == {
        "path": "optimizer", "there": "x", "here": "lans", "there_full": '"x"', "here_full": '{"kind": "lans"}',
    }  # fmt: skip


def test_only_what_is_shown_can_be_taken() -> None:
    taken: list[str] = []
    table = DifferenceTable(taken.append)
    table.show("there", [Difference("seed", 1, 2)])
    for content in ({"take": "seed"}, {"take": "name"}, {}, "seed", None):
        say(table, content)
    assert taken == ["seed"]
    table.complain("no such run")
    say(table, {"take": "seed"})
    assert taken == ["seed"]
    assert (table.rows, table.complaint) == ([], "no such run")
