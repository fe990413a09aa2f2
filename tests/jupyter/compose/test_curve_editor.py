"""The curve and the knobs of a schedule are two views of one thing: each writes the other."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.choices.choice import registry
from workbench.jupyter.compose.composer import Composer
from workbench.jupyter.compose.curve_editor import CurveEditor
from workbench.jupyter.compose.form import ChoiceKnob, Form
from workbench.recipes.recipe import Recipe


class Page:
    """What the page does: it sends messages and gets answers."""

    def __init__(self, editor: CurveEditor, monkeypatch: pytest.MonkeyPatch) -> None:
        self.editor, self.answers = editor, []
        monkeypatch.setattr(editor, "send", lambda message, buffers=None: self.answers.append(message))

    def say(self, **message: Any) -> None:
        self.editor._heard(None, {"turn": len(self.answers) + 1, **message}, [])
        assert self.answers[-1] == {"type": "done", "turn": len(self.answers)}, "each message has its answer"


def shown(knob: ChoiceKnob) -> CurveEditor:
    """The editor in a knob's body."""
    return next(child for child in knob.body.children if isinstance(child, CurveEditor))


def schedule_knob(heard: list[Any]) -> ChoiceKnob:
    knob = Form(registry("optimizer")["adamw"], "optimizer", lambda: heard.append(1)).knobs["schedule"]
    assert isinstance(knob, ChoiceKnob)
    return knob


def test_a_dragged_handle_writes_the_knobs(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []
    knob = schedule_knob(heard)
    page = Page(shown(knob), monkeypatch)
    page.say(type="move", handle=0, x=0.25, y=0.8)
    assert (knob.value["warmup"], knob.value["peak"]) == (0.25, 0.8)
    assert knob.part.knobs["warmup"].input.source.value == "0.25"  # type: ignore[union-attr]
    assert heard == [1], "one change for both numbers"
    assert knob.changes == 2
    assert page.editor.picture["handles"][0]["x"] == 0.25
    page.say(type="move", handle=0, x=0.25, y=0.8)
    assert heard == [1], "a move to where it is changes nothing"


def test_typed_numbers_move_the_curve_and_wrong_ones_wait() -> None:
    knob = schedule_knob([])
    editor, before = shown(knob), shown(knob).picture
    knob.part.knobs["hold"].input.source.value = "0.3"  # type: ignore[union-attr]
    assert editor.picture["handles"][1]["x"] == pytest.approx(0.4)
    after = editor.picture
    assert after != before
    knob.part.knobs["hold"].input.source.value = "lots"  # type: ignore[union-attr]
    assert (editor.stale, editor.picture) == (True, after)
    knob.part.knobs["hold"].input.source.value = "0.1"  # type: ignore[union-attr]
    assert not editor.stale


def test_nobody_moves_a_curve_that_does_not_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []
    knob = schedule_knob(heard)
    page = Page(shown(knob), monkeypatch)
    knob.part.knobs["hold"].input.source.value = "lots"  # type: ignore[union-attr]
    page.say(type="move", handle=0, x=0.5, y=0.5)
    assert knob.value["hold"] == "lots"
    assert len(heard) == 1


@pytest.mark.parametrize(
    "message",
    [{"type": "move", "handle": 9, "x": 0.5}, {"type": "move", "handle": None}, {"type": "add"}, {"type": "?"},
     {"type": "remove", "handle": 0}, {"type": "add", "x": 0.5}, {"type": "move", "handle": -1, "x": 0.2}],
)  # fmt: skip
def test_messages_without_sense_are_answered_and_change_nothing(
    message: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Any] = []
    knob = schedule_knob(heard)
    Page(shown(knob), monkeypatch).say(**message)
    assert heard == []


def test_points_are_added_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    knob = schedule_knob([])
    knob.picker.value = "points"
    page = Page(shown(knob), monkeypatch)
    page.say(type="add", x=0.3)
    assert knob.value["places"] == [0.0, 0.1, 0.3, 0.5, 1.0]
    assert knob.value["values"][2] == pytest.approx(0.75)
    page.say(type="remove", handle=1)
    assert knob.value["places"] == [0.0, 0.3, 0.5, 1.0]


def test_a_knob_that_stays_has_no_curve_and_one_that_moves_keeps_to_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    form = Form(registry("data")["embedded"], "data", lambda: None)
    rows = form.knobs["batch_size"]
    assert isinstance(rows, ChoiceKnob)
    assert not [child for child in rows.body.children if isinstance(child, CurveEditor)]
    rows.picker.value = "stages"
    editor = shown(rows)
    assert editor.title == "curve of data.batch_size"
    assert editor.picture["y"]["unit"] == "rows"
    assert editor.picture["y"]["grid"] == "sizes"
    assert all(handle["y_reach"][0] >= 1 for handle in editor.picture["handles"])
    same = shown(rows)
    rows.picker.value = "linear"
    assert shown(rows) is same, "one editor for all shapes of a knob"


def test_the_composer_tells_the_curves_the_budget_and_checks_what_they_write(monkeypatch: pytest.MonkeyPatch) -> None:
    composer = Composer()
    knob = composer.axes["optimizer"].part.knobs["schedule"]  # type: ignore[union-attr]
    assert isinstance(knob, ChoiceKnob)
    assert shown(knob).picture["x"]["budget"] == [composer.recipe.budget.amount, composer.recipe.budget.unit]  # type: ignore[union-attr]
    composer.budget.knobs["amount"].input.source.value = "777"  # type: ignore[union-attr]
    assert shown(knob).picture["x"]["budget"][0] == 777
    Page(shown(knob), monkeypatch).say(type="move", handle=0, x=0.2, y=0.5)
    assert isinstance(composer.recipe, Recipe)
    assert composer.recipe.optimizer.schedule.peak == 0.5


def test_a_drag_is_undone_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    composer = Composer()
    knob, before = composer.axes["optimizer"].part.knobs["schedule"], composer.recipe  # type: ignore[union-attr]
    assert isinstance(knob, ChoiceKnob)
    monkeypatch.setattr(composer.composition, "_clock", lambda: 0.0)
    page = Page(shown(knob), monkeypatch)
    for x, y in ((0.2, 1.0), (0.21, 0.9), (0.22, 0.8), (0.22, 0.7)):
        page.say(type="move", handle=0, x=x, y=y)
    composer.undo()
    assert composer.recipe == before
    assert composer.composition.undoes == ""
