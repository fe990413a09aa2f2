"""Undo and redo against the slow, obvious reference: two stacks of whole states."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.jupyter.compose.history import History


def pair(before: int, after: int) -> str:
    return f"{before}>{after}"


@given(st.lists(st.one_of(st.integers(0, 5), st.sampled_from(["undo", "redo"])), max_size=60), st.integers(1, 8))
def test_it_is_two_stacks(steps: list[int | str], limit: int) -> None:
    history, done, undone = History(0, limit=limit), [0], []
    for step in steps:
        if step == "undo":
            if len(done) > 1:
                undone.append(done.pop())
            assert history.undo() == done[-1]
        elif step == "redo":
            if undone:
                done.append(undone.pop())
            assert history.redo() == done[-1]
        elif step != done[-1]:
            history.record(int(step))
            done, undone = [*done, int(step)][-limit:], []
        else:
            history.record(int(step))
        assert history.present == done[-1]
        assert history.undone_by(pair) == (pair(done[-2], done[-1]) if len(done) > 1 else "")
        assert history.redone_by(pair) == (pair(done[-1], undone[-1]) if undone else "")


def test_quick_changes_of_one_knob_are_one() -> None:
    history = History("a")
    for when, state in ((0.0, "b"), (0.5, "c"), (1.2, "d")):
        history.record(state, "lr", when)
    assert history.undone_by(lambda before, after: before + after) == "ad"
    assert history.undo() == "a"
    assert history.redo() == "d"


def test_slow_ones_other_knobs_and_what_follows_an_undo_are_not() -> None:
    history = History("a")
    history.record("b", "lr", 0.0)
    history.record("c", "lr", 1.1)
    history.record("d", "width", 1.2)
    history.record("e", "", 1.3)
    history.record("f", "", 1.4)
    assert [history.undo() for _ in range(5)] == ["e", "d", "c", "b", "a"]
    history.record("b", "lr", 2.0)
    history.undo()
    history.record("c", "lr", 2.1)
    assert history.undo() == "a"


def test_there_and_back_within_a_moment_is_nothing() -> None:
    history = History("a")
    history.record("b", "lr", 0.0)
    history.record("a", "lr", 0.3)
    assert history.undone_by(lambda before, after: "something") == ""
    history.record("b", "lr", 0.4)
    assert history.undo() == "a"


def test_a_history_holds_something() -> None:
    with pytest.raises(ValueError, match="limit 0"):
        History("a", limit=0)
