"""The curve and the knobs of a schedule are two views of one thing; points can be dragged."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.choices.choice import registry
from workbench.jupyter.compose.composer import Composer
from workbench.jupyter.compose.curve_editor import CurveEditor
from workbench.jupyter.compose.form import ChoiceKnob, Form
from workbench.recipes.recipe import Recipe


def shown(knob: ChoiceKnob) -> CurveEditor:
    """The editor in a knob's body."""
    return next(child for child in knob.body.children if isinstance(child, CurveEditor))


def schedule_knob(heard: list[Any], kind: str) -> ChoiceKnob:
    knob = Form(registry("optimizer")["adamw"], "optimizer", lambda: heard.append(1)).knobs["schedule"]
    assert isinstance(knob, ChoiceKnob)
    knob.picker.value = kind
    heard.clear()
    return knob


def test_dragged_points_write_the_knobs() -> None:
    heard: list[Any] = []
    knob = schedule_knob(heard, "points")
    editor = shown(knob)
    assert editor.picture["points"][1] == [0.1, 1.0]
    editor._heard(None, {"turn": 1, "places": [0.0, 0.25, 1.0], "values": [0.1, 0.8, 0.1]}, [])
    assert (knob.value["places"], knob.value["values"]) == ([0.0, 0.25, 1.0], [0.1, 0.8, 0.1])
    assert heard == [1], "one change for all numbers"
    assert (editor.picture["points"][1], editor.picture["turn"]) == ([0.25, 0.8], 1)


@pytest.mark.parametrize(
    ("kind", "message"),
    [("points", {"places": [0.5, 0.1], "values": [1.0, 1.0]}), ("points", {"places": None}), ("points", "?"),
     ("linear", {"places": [0.0], "values": [1.0]})],
)  # fmt: skip
def test_what_makes_no_points_changes_nothing(kind: str, message: Any) -> None:
    heard: list[Any] = []
    shown(schedule_knob(heard, kind))._heard(None, message, [])
    assert heard == []


def test_typed_numbers_move_the_curve_and_wrong_ones_wait() -> None:
    knob = schedule_knob([], "warmup_hold_decay")
    editor, before = shown(knob), shown(knob).picture
    knob.part.knobs["hold"].input.source.value = "0.3"  # type: ignore[union-attr]
    after = editor.picture
    assert after["line"] != before["line"]
    knob.part.knobs["hold"].input.source.value = "lots"  # type: ignore[union-attr]
    assert (editor.stale, editor.picture) == (True, after)
    knob.part.knobs["hold"].input.source.value = "0.1"  # type: ignore[union-attr]
    assert not editor.stale


def test_a_knob_that_stays_has_no_curve_and_one_that_moves_keeps_to_its_bounds() -> None:
    rows = Form(registry("data")["embedded"], "data", lambda: None).knobs["batch_size"]
    assert isinstance(rows, ChoiceKnob)
    assert not [child for child in rows.body.children if isinstance(child, CurveEditor)]
    rows.picker.value = "points"
    editor = shown(rows)
    assert editor.title == "curve of data.batch_size"
    assert (editor.picture["y"]["unit"], editor.picture["y"]["whole"]) == ("rows", True)
    assert editor.picture["y"]["least"] >= 1
    rows.picker.value = "linear"
    assert shown(rows) is editor, "one editor for all shapes of a knob"
    assert editor.picture["points"] == []


def test_the_composer_tells_the_curves_the_budget_and_undoes_a_drag() -> None:
    composer = Composer()
    knob = composer.axes["optimizer"].part.knobs["schedule"]  # type: ignore[union-attr]
    assert isinstance(knob, ChoiceKnob)
    composer.budget.knobs["amount"].input.source.value = "777"  # type: ignore[union-attr]
    assert shown(knob).picture["x"]["budget"][0] == 777
    knob.picker.value = "points"
    before = composer.recipe
    shown(knob)._heard(None, {"turn": 1, "places": [0.0, 1.0], "values": [1.0, 0.5]}, [])
    assert isinstance(composer.recipe, Recipe)
    assert composer.recipe.optimizer.schedule.values == (1.0, 0.5)
    composer.undo()
    assert composer.recipe == before
