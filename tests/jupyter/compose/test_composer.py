"""The composer: untouched it is the preset, each change is checked, errors and marks stand where they belong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import ipywidgets
import pytest

from tests.costs import quick_ones
from tests.jupyter.live import run_folder
from tests.jupyter.messages import hear, say
from workbench import presets
from workbench.jupyter.compose.composer import Composer
from workbench.jupyter.compose.composition import State
from workbench.jupyter.compose.differences import differences
from workbench.jupyter.compose.form import ChoiceKnob, Form
from workbench.jupyter.compose.recipe_text import as_json
from workbench.recipes.recipe import AXES, Recipe


@pytest.fixture(scope="module")
def composer() -> Composer:
    return Composer()


def type_into(composer: Composer, axis: str, name: str, text: str) -> None:
    knob = composer.axes[axis].part.knobs[name]
    # A knob that moves shows its constant in a part of its own.
    (knob if hasattr(knob, "input") else knob.part).input.source.value = text


@pytest.mark.parametrize("name", presets.names())
def test_an_untouched_preset_is_the_preset(composer: Composer, name: str) -> None:
    composer.presets.value = name
    assert composer.recipe == presets.get(name)
    assert composer.problems == []
    assert [section.changes for section in composer.sections] == [0] * len(composer.sections)


def test_there_is_a_section_for_every_field_of_a_recipe(composer: Composer) -> None:
    shown = set(composer.axes) | {"budget"} | set(composer.run.knobs)
    assert shown == set(Recipe.model_fields) - {"schema_version"}
    assert list(composer.axes) == list(AXES)


def test_a_change_is_in_the_recipe_and_marked() -> None:
    composer = Composer(presets.get("fast"))
    type_into(composer, "optimizer", "lr", "0.002")
    assert composer.recipe == presets.get("fast").with_(optimizer={"lr": 0.002})
    changed = {section.name: section.changes for section in composer.sections if section.changes}
    assert changed == {"optimizer": 1}
    assert "1 knob changed" in composer.verdict.value
    row = composer.axes["optimizer"].part.knobs["lr"].widget
    assert "lab-changed" in row._dom_classes


def test_an_impossible_combination_has_no_recipe_and_says_why_beside_the_knob() -> None:
    heard: list[int] = []
    composer = Composer(changed=lambda: heard.append(1))
    assert heard == []
    type_into(composer, "architecture", "heads", "3")
    assert heard == [1]
    assert composer.recipe is None
    assert [problem.path for problem in composer.problems] == ["architecture.heads"]
    row = composer.axes["architecture"].part.knobs["heads"].widget
    assert "do not divide" in row.children[-1].value
    assert "cannot run" in composer.verdict.value
    type_into(composer, "architecture", "heads", "8")
    assert composer.recipe is not None
    assert "ready" in composer.verdict.value


def test_text_that_is_no_number_is_an_error_beside_the_knob() -> None:
    composer = Composer()
    type_into(composer, "data", "heldout_fraction", "0.2")
    for typed, got in (("many", "&#x27;many&#x27;"), ("12.5", "&#x27;12.5&#x27;; nearest: 12 or 13"), ("", "nothing")):
        type_into(composer, "data", "batch_size", typed)
        assert composer.recipe is None
        row = composer.axes["data"].part.knobs["batch_size"].part.widget
        legal = "must be a whole number &gt;= 1 and &lt;= 1,048,576, or a schedule"
        assert row.children[-1].value == f"{legal}, got {got}; the arrow beside it brings 16 back"
        # Nothing is lost: what was typed stands there, and what was set before.
        assert composer.fields["data"]["batch_size"] == typed
        assert composer.fields["data"]["heldout_fraction"] == 0.2
    assert any("lab-reset" in child._dom_classes for child in row.children)
    # A number that cannot be is told what can: nothing need be brought back.
    type_into(composer, "data", "batch_size", "0")
    assert "arrow" not in row.children[-1].value


def test_a_knob_far_off_says_so_and_is_no_error() -> None:
    composer = Composer(presets.get("fast"))
    type_into(composer, "optimizer", "lr", "100")
    assert composer.recipe is not None
    row = composer.axes["optimizer"].part.knobs["lr"].widget
    (doubt,) = (child.value for child in row.children if "lab-doubt" in child._dom_classes)
    assert re.fullmatch(r"100 is [\d,]+ times what \w+ begins with \([\d.]+\)", doubt)
    assert "lab-bad" not in row._dom_classes
    assert not any("to fix" in section.badge.value for section in composer.sections)
    type_into(composer, "optimizer", "lr", "0.002")
    assert not any("lab-doubt" in child._dom_classes for child in row.children)


def test_a_batch_that_begins_to_move_starts_within_its_bounds() -> None:
    """A ramp offered for 32 rows must not end at 0 rows, nor a row length at 0 tokens."""
    composer = Composer()
    for name, low in (("batch_size", 1), ("sequence_length", 8)):
        knob = composer.axes["data"].part.knobs[name]
        start = knob.value
        knob.picker.value = "linear"
        assert (knob.value["start"], knob.value["end"]) == (start, low)
    assert composer.problems == []
    assert composer.recipe is not None
    assert composer.recipe.data.longest == presets.get(presets.DEFAULT).data.longest
    type_into(composer, "architecture", "heads", "8")  # the form goes on working around it
    composer.axes["data"].part.knobs["batch_size"].part.knobs["end"].input.source.value = "0"
    assert any("must be >= 1" in problem.message for problem in composer.problems)


def test_an_error_opens_the_section_it_would_be_hidden_in() -> None:
    composer = Composer()
    section = next(section for section in composer.sections if section.name == "data")
    assert section.toggle.value is False
    type_into(composer, "data", "sequence_length", "1")
    assert section.toggle.value is True


def test_texts_follow_the_knobs_and_mark_what_is_wrong() -> None:
    composer = Composer(presets.get("fast"))
    composer.show.value = "Python"
    type_into(composer, "optimizer", "lr", "0.002")
    assert "'lr': 0.002" in composer.python.text
    composer.show.value = "JSON"
    type_into(composer, "optimizer", "lr", "0.001")
    assert json.loads(composer.json.text) == composer.fields
    type_into(composer, "architecture", "heads", "3")
    line = composer.json.text[: composer.json.text.index('"heads": 3')].count("\n") + 1
    assert [where for where, _ in composer.json.problems] == [line]
    composer.show.value = "Difference"
    assert {row["path"] for row in composer.difference.table.rows} == {"optimizer.lr", "architecture.heads"}


def test_a_pasted_text_sets_every_knob_and_can_be_undone() -> None:
    heard: list[int] = []
    composer = Composer(changed=lambda: heard.append(1))
    recipe = presets.get("pld").with_(optimizer={"lr": 0.002})
    before = composer.presets.value
    composer.json.apply(as_json(recipe.to_dict()))
    assert composer.recipe == recipe
    assert composer.presets.value == before, "JSON names no preset, so marks refer to what they did"
    composer.json.apply(as_json(presets.get("fast").to_dict()))
    assert composer.recipe == presets.get("fast")
    assert not composer.json.apply("{")
    assert composer.recipe == presets.get("fast")
    composer.undo()
    assert composer.recipe == recipe
    composer.undo()
    assert composer.recipe == presets.get(presets.DEFAULT)
    assert composer.presets.value == presets.DEFAULT
    assert len(heard) == 4


def test_undo_and_redo_walk_over_every_kind_of_change() -> None:
    composer = Composer()
    states = [composer.fields]
    for change in (
        lambda: type_into(composer, "optimizer", "lr", "0.002"),
        lambda: setattr(composer.axes["optimizer"].picker, "value", "lans"),
        lambda: type_into(composer, "optimizer", "lr", "many"),
        lambda: setattr(composer.axes["objective"].part.knobs["mask_rate"].picker, "value", "constant"),
        lambda: setattr(composer.presets, "value", "pld"),
        lambda: setattr(composer.axes["execution"].part.knobs["compile"].input.source, "value", False),
        lambda: setattr(composer.run.knobs["notes"].input.source, "value", "why not"),
        lambda: composer.load(presets.get("bert_tiny")),
    ):
        change()
        assert composer.fields != states[-1]
        states.append(composer.fields)
    assert composer.undo_button.tooltip == "undo preset pld → the given recipe (Ctrl+Z)"
    for state in reversed(states[:-1]):
        composer.undo_button.click()
        assert composer.fields == state
    assert composer.undo_button.tooltip == "undo (Ctrl+Z): nothing yet"
    assert "lab-dim" in composer.undo_button._dom_classes
    assert composer.redo_button.tooltip == "redo optimizer.lr 0.0015 → 0.002 (Ctrl+Shift+Z)"
    assert composer.recipe == presets.get(presets.DEFAULT)
    composer.undo()
    assert "nothing to undo" in composer.verdict.value
    for state in states[1:]:
        say(composer.page, {"do": "redo"})
        assert composer.fields == state
    assert "redo: preset pld → the given recipe" in composer.verdict.value
    type_into(composer, "optimizer", "lr", "0.5")
    assert composer.redo_button.tooltip == "redo (Ctrl+Shift+Z): nothing yet"


def test_what_was_undone_is_pointed_at(monkeypatch: pytest.MonkeyPatch) -> None:
    composer = Composer()
    type_into(composer, "data", "batch_size", "8")
    data = next(section for section in composer.sections if section.name == "data")
    data.toggle.value = False
    heard = hear(composer.page, monkeypatch)
    say(composer.page, {"do": "undo"})
    assert heard == [{"point": "data.batch_size", "focus": False}]
    assert data.toggle.value
    assert "undo: data.batch_size 8 → 16" in composer.verdict.value, "as it goes now"
    say(composer.page, {"do": "redo"})
    assert "redo: data.batch_size 16 → 8" in composer.verdict.value


def test_the_recipe_of_a_run_is_a_start_like_any_preset(tmp_path: Path) -> None:
    other = presets.get("fast").with_(name="mine", optimizer={"lr": 0.004})
    good = run_folder(tmp_path / "20260131-081500-mine-0a1b2c-3d4e", **other.to_dict())
    bad = run_folder(tmp_path / "20260131-081501-bad-0a1b2c-3d4e", optimizer="adamm")
    composer = Composer(runs_dir=tmp_path)
    composer.presets.value = f"run:{good.id}"
    assert composer.recipe == other
    assert "as run mine has it" in composer.verdict.value
    assert good.id in composer.page.resting
    composer.show.value = "Python"
    assert "'lr': 0.004" in composer.python.text
    composer.presets.value = f"run:{bad.id}"
    assert "did you mean &#x27;adamw&#x27;" in composer.verdict.value
    assert composer.presets.value == f"run:{good.id}", "what could not be loaded is not picked"
    assert composer.recipe == other
    composer.undo()
    assert (composer.presets.value, composer.recipe) == (presets.DEFAULT, presets.get(presets.DEFAULT))


def test_theirs_can_be_taken_row_by_row_and_undone() -> None:
    composer = Composer(presets.get("fast"))
    composer.show.value = "Difference"
    composer.difference.against.value = "pld"
    taken = 0
    while composer.difference.table.rows:
        say(composer.difference.table, {"take": composer.difference.table.rows[0]["path"]})
        taken += 1
    assert composer.recipe == presets.get("pld")
    assert taken == 7
    for _ in range(taken):
        composer.undo()
    assert composer.recipe == presets.get("fast")


def test_the_way_to_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    composer = Composer()
    type_into(composer, "architecture", "heads", "3")
    assert "data-path='architecture.heads'" in composer.verdict.value
    composer.finder.text.value = "seed"
    composer.show.value = "JSON"
    heard = hear(composer.page, monkeypatch)
    say(composer.page, {"go": "architecture.heads"})
    assert (composer.show.value, composer.finder.text.value) == ("Form", "")
    assert heard == [{"point": "architecture.heads", "focus": True}]
    for asked in ({}, {"do": "dance"}, {"go": 3}, None):
        say(composer.page, asked)


def test_a_reset_in_the_heading_takes_the_whole_choice_back() -> None:
    composer = Composer()
    heading = next(section.heading for section in composer.sections if section.name == "optimizer")
    composer.axes["optimizer"].picker.value = "lans"
    reset = heading.children[-1]
    assert reset.tooltip.startswith("optimizer: back to adamw")
    reset.click()
    assert composer.recipe == presets.get(presets.DEFAULT)
    assert heading.children[-1] is not reset


def test_everything_is_reset_at_once_and_that_is_undone() -> None:
    composer = Composer(presets.get("fast"))
    assert "lab-all" not in composer.verdict.value
    type_into(composer, "optimizer", "lr", "0.002")
    composer.axes["depth"].picker.value = "progressive_drop"
    type_into(composer, "architecture", "heads", "3")
    changed = composer.fields
    assert "lab-all" in composer.verdict.value
    say(composer.page, {"do": "reset"})
    assert composer.recipe == presets.get("fast")
    composer.undo()
    assert composer.fields == changed


def turned(part: Form) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every knob below a form, and another value for it, entered as a user would."""
    for knob in part.knobs.values():
        if isinstance(knob, ChoiceKnob):
            others = [kind for kind in knob.picker.options if kind != knob.kind]
            if others:
                yield knob.path, partial(setattr, knob.picker, "value", others[-1])
            if isinstance(knob.part, Form):
                yield from turned(knob.part)
            continue
        source = knob.input.source
        if isinstance(source.value, bool):
            value: object = not source.value
        elif hasattr(source, "options"):
            value = next(value for _, value in source.options if value != source.value)
        else:
            value = source.value + "1"
        yield knob.path, partial(setattr, source, "value", value)


@pytest.mark.parametrize("name", quick_ones(["bert_tiny", "lans_two_phase", "simigrad"], "bert_tiny"))
def test_turning_any_knob_answers_in_every_part(composer: Composer, name: str) -> None:
    """A constant, nested phases, a rule of its own: every control there is. Undo leads back from each."""
    composer.presets.value = name
    start = composer.fields
    forms = [knob.part for knob in composer.axes.values() if isinstance(knob.part, Form)]
    for form in (*forms, composer.budget, composer.run):
        for path, turn in list(turned(form)):
            turn()
            moved = [row.path for row in differences(start, composer.fields)]
            assert moved == [path]
            assert sum(section.changes for section in composer.sections) == 1
            valid = not Recipe.check(composer.fields)
            assert (composer.recipe is not None) == valid == ("ready" in composer.verdict.value)
            composer.undo()
            assert composer.fields == start
    assert composer.recipe == presets.get(name)


def test_a_given_recipe_is_the_start_and_what_reset_returns_to() -> None:
    recipe = presets.get("pld").with_(name="<b>mine</b>", optimizer={"lr": 0.5})
    composer = Composer(recipe)
    assert composer.recipe == recipe
    assert composer.presets.value is None
    type_into(composer, "optimizer", "lr", "0.25")
    reset = composer.axes["optimizer"].part.knobs["lr"].widget.children[1]
    reset.click()
    assert composer.recipe == recipe


def test_a_chosen_kind_unfolds_its_knobs_and_a_loaded_one_does_not() -> None:
    composer = Composer()
    depth = next(section for section in composer.sections if section.name == "depth")
    composer.presets.value = "pld"
    assert not depth.toggle.value
    composer.axes["depth"].picker.value = "full"
    assert depth.toggle.value


def test_docked_widgets_and_the_verdict_share_a_line() -> None:
    composer, start, above, beside = Composer(), ipywidgets.Box(), ipywidgets.Box(), ipywidgets.Button()
    composer.dock(start, above, [beside])
    assert composer._start.children[:2] == (start, composer.presets)
    assert composer.children[-2] is above
    assert composer.children[-1].children == (beside, composer.verdict)


def test_another_composer_is_restored_with_what_is_wrong() -> None:
    composer = Composer()
    composer.presets.value = "pld"
    type_into(composer, "architecture", "heads", "3")
    other = Composer()
    other.restore(State.from_dict(json.loads(json.dumps(composer.composition.state.to_dict()))))
    assert other.fields == composer.fields
    assert other.problems == composer.problems
    assert other.presets.value == "pld"
    other.undo()
    assert other.recipe == presets.get(presets.DEFAULT)


def test_an_amount_with_its_unit_sets_both() -> None:
    composer = Composer()
    amount, unit = (composer.budget.knobs[name].input.source for name in ("amount", "unit"))
    amount.value = "20 s"
    assert composer.recipe is not None
    assert str(composer.recipe.budget) == "20 seconds"
    assert (amount.value, unit.value) == ("20", "seconds")
    composer.undo()
    assert composer.fields["budget"] == Composer().fields["budget"]
    amount.value = "20 parsecs"
    assert composer.recipe is None
    assert composer.problems == [("budget.amount", "must be a number > 0, got '20 parsecs'")]
