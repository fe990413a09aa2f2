"""Differences: rows that a reader can act on, and taking every row makes the two sides alike."""

from __future__ import annotations

import pytest

from workbench import presets
from workbench.base.fields import at, put
from workbench.jupyter.compose.differences import change_text, differences
from workbench.recipes.recipe import Recipe


@pytest.mark.parametrize("here", presets.names()[:8])
@pytest.mark.parametrize("there", presets.names()[4:])
def test_taking_every_row_makes_the_sides_alike(here: str, there: str) -> None:
    mine, theirs = presets.get(here).to_dict(), presets.get(there).to_dict()
    found = differences(mine, theirs)
    assert bool(found) == (mine != theirs)
    for path, value, other in found:
        assert at(mine, path) == value
        assert at(theirs, path) == other
        mine = put(mine, path, other)
    assert Recipe(**mine) == presets.get(there)


def test_a_choice_of_another_kind_is_one_row_and_knobs_of_one_kind_are_many() -> None:
    base = presets.get("bert_tiny")
    ramp = {"kind": "linear", "start": 4, "end": 16}
    other = base.with_(optimizer="lans", architecture={"layers": 2, "dropout": 0.5}, data={"batch_size": ramp})
    assert [row.path for row in differences(base.to_dict(), other.to_dict())] == [
        "data.batch_size", "architecture.layers", "architecture.dropout", "optimizer",
    ]  # fmt: skip


def test_what_is_wrong_can_be_compared_too() -> None:
    fields = presets.get("fast").to_dict()
    broken = put(put(fields, "optimizer.lr", "many"), "data.paths", ["x"])
    assert differences(broken, fields) == [
        ("data.paths", ["x"], None),
        ("optimizer.lr", "many", fields["optimizer"]["lr"]),
    ]


def test_a_change_in_words() -> None:
    fields = presets.get("bert_tiny").to_dict()
    assert change_text(fields, fields) == "nothing"
    assert change_text(fields, put(fields, "optimizer.lr", 1e-3)) == "optimizer.lr 0.003 → 0.001"
    other = presets.get("bert_tiny").with_(optimizer="lans").to_dict()
    assert change_text(fields, other) == "optimizer adamw → lans"
    assert change_text(fields, presets.get("fast").to_dict()).startswith("7 knobs: name, ")
    assert len(change_text(fields, put(fields, "notes", "x" * 5000))) < 80
