"""Comparing with where one began, with presets and with runs; each row can be taken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.jupyter.live import run_folder
from tests.jupyter.messages import say
from workbench import presets
from workbench.base.fields import put
from workbench.jupyter.compose.composition import State
from workbench.jupyter.compose.difference_view import DifferenceTable, DifferenceView
from workbench.jupyter.compose.differences import Difference


def test_against_the_beginning_a_preset_and_a_run(tmp_path: Path) -> None:
    other = presets.get("fast").with_(seed=5, name="mine")
    run_folder(tmp_path / "20260131-081500-mine-0a1b2c-3d4e", **other.to_dict())
    changed: list[Mapping[str, Any]] = []
    view = DifferenceView(changed.append, tmp_path)
    fields = put(presets.get("fast").to_dict(), "optimizer.lr", "many")
    view.show(State(fields, presets.get("fast"), "fast"))
    assert (view.table.there, [row["path"] for row in view.table.rows]) == ("preset fast", ["optimizer.lr"])
    view.against.value = "pld"
    assert view.table.there == "preset pld"
    assert "depth" in [row["path"] for row in view.table.rows]
    view.against.value = "run:20260131-081500-mine-0a1b2c-3d4e"
    assert view.table.there == "run mine"
    assert [row["path"] for row in view.table.rows] == ["name", "optimizer.lr", "seed"]
    say(view.table, {"take": "seed"})
    assert changed == [put(fields, "seed", 5)]


def test_a_run_that_cannot_be_read_is_explained(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "20260131-081500-mine-0a1b2c-3d4e", optimizer="adamm")
    view = DifferenceView(lambda fields: None, tmp_path)
    view.against.value = f"run:{folder.id}"
    view.show(State(presets.get("fast").to_dict(), presets.get("fast"), "fast"))
    assert "did you mean 'adamw'" in view.table.complaint
    folder.recipe.write_text(json.dumps(presets.get("fast").to_dict()))
    view.show(State(presets.get("fast").to_dict(), presets.get("fast"), "fast"))
    assert (view.table.complaint, view.table.rows) == ("", [])
    view.against.value = "run:gone"
    assert "no run 'gone'" in view.table.complaint
    view.against.value = None
    assert view.table.complaint == ""


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


def test_a_choice_of_another_kind_is_followed_by_what_it_sets_otherwise() -> None:
    taken: list[str] = []
    table = DifferenceTable(taken.append)
    lans = {"kind": "lans", "lr": 0.00675, "betas": [0.9, 0.99], "schedule": {"kind": "warmup_hold_decay", "warmup": 1}}
    adamw = {"kind": "adamw", "lr": 0.0015, "fused": True, "schedule": {"kind": "warmup_hold_decay", "warmup": 2}}
    table.show("preset fast", [Difference("optimizer", lans, adamw)])
    assert [(row["path"], row["here"], row["there"], row.get("inside", False)) for row in table.rows] == [
        ("optimizer", "lans", "adamw", False),
        ("optimizer.lr", "0.00675", "0.0015", True),
        ("optimizer.betas", "[0.9, 0.99]", "\N{EN DASH}", True),
        ("optimizer.schedule.warmup", "1", "2", True),
        ("optimizer.fused", "\N{EN DASH}", "on", True),
    ]
    say(table, {"take": "optimizer.lr"})
    say(table, {"take": "optimizer"})
    assert taken == ["optimizer"]


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
