"""Forms: every registered choice yields one, its value is the choice, errors stand beside their knobs."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.choices.choice import Choice, Problem, registry
from workbench.choices.progress import Budget
from workbench.jupyter.compose.form import CONSTANT, ChoiceKnob, Form, Knob
from workbench.jupyter.compose.inputs import defaults, shape_of
from workbench.recipes.recipe import AXES, Recipe

ALL = [(axis, kind) for axis in (*AXES, "tokenizer", "schedule") for kind in registry(axis)]


def filled(choice: type[Choice]) -> dict[str, Any]:
    """The defaults, with something in every field that has none."""
    values = defaults(choice)
    for name, info in choice.model_fields.items():
        if info.is_required():
            values[name] = ["x"] if shape_of(info).kind == "list" else "x"
    return values


def errors(part: Any) -> list[str]:
    """Texts of the error lines directly in one knob's row."""
    return [child.value for child in part.widget.children if "lab-error" in child._dom_classes]


@pytest.mark.parametrize(("axis", "kind"), ALL)
def test_a_form_s_value_is_the_choice(axis: str, kind: str) -> None:
    choice = registry(axis)[kind]
    form = Form(choice, axis, lambda: None)
    one_value = {name for name, field in choice.model_fields.items() if len(shape_of(field).options) == 1}
    assert "kind" in one_value
    assert set(form.knobs) == set(choice.model_fields) - one_value
    needed = {knob.widget for name, knob in form.knobs.items() if choice.model_fields[name].is_required()}
    assert set(form.widget.children[: len(needed)]) == needed, "what must be filled in is seen first"
    form.load(filled(choice))
    assert choice.model_validate(form.value) == choice.model_validate(filled(choice))
    assert form.value["kind"] == kind


@pytest.mark.parametrize(("axis", "kind"), ALL)
def test_every_knob_can_be_changed_marked_and_reset(axis: str, kind: str) -> None:
    form = Form(registry(axis)[kind], axis, lambda: None)
    for name, knob in form.knobs.items():
        before = form.value
        change(knob)
        assert form.value != before, name
        assert knob.changes == 1, name
        assert form.changes == 1, name
        if isinstance(knob, Knob):
            reset = next(child for child in knob.widget.children if "lab-reset" in child._dom_classes)
            reset.click()
        else:
            knob.load(before[name], before[name])
        assert form.value == before, name
        assert form.changes == 0, name


def change(knob: Knob | ChoiceKnob) -> None:
    """Another legal or illegal value, as a user would enter it."""
    if isinstance(knob, ChoiceKnob):
        knob.picker.value = next(option for option in knob.picker.options if option != knob.kind)
        return
    source = knob.input.source
    if isinstance(source.value, bool):
        source.value = not source.value
    elif hasattr(source, "options"):
        source.value = next(value for _, value in source.options if value != source.value)
    else:
        source.value += "7"


def test_required_fields_start_empty_and_the_check_says_so() -> None:
    form = Form(registry("data")["files"], "data", lambda: None)
    problems = Recipe.check({**Recipe().to_dict(), "data": form.value})
    assert form.take(problems) == []
    assert "at least 1" in errors(form.knobs["paths"])[0]


def test_errors_stand_beside_their_knob_and_go_when_it_is_right() -> None:
    form = Form(registry("architecture")["pre_ln"], "architecture", lambda: None)
    elsewhere = Problem("optimizer.lr", "too large")
    assert form.take([Problem("architecture.heads", "3 <heads> do not divide"), elsewhere]) == [elsewhere]
    assert errors(form.knobs["heads"]) == ["3 &lt;heads&gt; do not divide"]
    assert errors(form.knobs["width"]) == []
    assert form.take([elsewhere]) == [elsewhere]
    assert errors(form.knobs["heads"]) == []


def test_a_name_that_begins_another_does_not_take_its_error() -> None:
    form = Form(registry("architecture")["pre_ln"], "architecture", lambda: None)
    assert form.take([Problem("architecture.head", "wrong")]) == []
    assert errors(form.knobs["head"]) == ["wrong"]
    assert errors(form.knobs["heads"]) == []


def test_errors_of_nested_choices_stand_beside_the_nested_knob() -> None:
    form = Form(registry("optimizer")["adamw"], "optimizer", lambda: None)
    fields = Recipe().to_dict()
    form.knobs["schedule"].part.knobs["warmup"].input.source.value = "-1"
    fields["optimizer"] = form.value
    assert form.take(Recipe.check(fields)) == []
    assert "greater than or equal to 0" in errors(form.knobs["schedule"].part.knobs["warmup"])[0]
    # A rule over several knobs of the shape belongs to the shape.
    form.knobs["schedule"].part.knobs["warmup"].input.source.value = "0.7"
    form.knobs["schedule"].part.knobs["hold"].input.source.value = "0.7"
    fields["optimizer"] = form.value
    assert form.take(Recipe.check(fields)) == []
    assert "must not exceed length" in errors(form.knobs["schedule"])[0]


def test_a_scheduled_knob_is_a_number_or_a_shape() -> None:
    form = Form(registry("objective")["masked"], "objective", lambda: None)
    rate = form.knobs["mask_rate"]
    assert rate.kind == CONSTANT
    assert rate.value == 0.15
    rate.picker.value = "linear"
    assert rate.value["kind"] == "linear"
    rate.part.knobs["start"].input.source.value = "0.3"
    rate.picker.value = CONSTANT
    assert rate.value == 0.15
    rate.picker.value = "linear"  # what was edited comes back
    assert rate.value["start"] == 0.3


def test_another_kind_counts_as_a_change_and_brings_its_defaults() -> None:
    heard: list[int] = []
    knob = ChoiceKnob("depth", "depth", "", "", {"kind": "full"}, lambda: heard.append(1))
    knob.picker.value = "progressive_drop"
    assert heard == [1]
    assert knob.changes == 1
    assert knob.value == defaults(registry("depth")["progressive_drop"])


def test_what_two_kinds_have_in_common_stays_as_it_was_chosen_last() -> None:
    """Also where a kind was shown before, which else comes back as it was left."""
    fields = defaults(registry("execution")["native"]) | {"device": "cpu", "precision": "bf16"}
    knob = ChoiceKnob("execution", "execution", "", "", fields, lambda: None)
    knob.picker.value = "auto"
    assert knob.value["device"] == "cpu"
    knob.part.knobs["device"].input.source.value = "auto"  # type: ignore[union-attr]
    knob.picker.value = "native"
    assert knob.value == fields | {"device": "auto"}


def test_loading_calls_nobody_and_sends_only_what_differs() -> None:
    heard: list[int] = []
    form = Form(Budget, "budget", lambda: heard.append(1))
    sent: list[str] = []
    for knob in form.knobs.values():
        knob.input.source.observe(lambda change: sent.append(change["name"]), names="value")
    form.load({**defaults(Budget), "amount": 7.0})
    assert heard == []
    assert len(sent) == 1
    assert form.changes == 1  # the baseline is still the default
    form.load(form.value, form.value)
    assert form.changes == 0


def test_a_constant_that_becomes_a_shape_starts_at_the_constant() -> None:
    form = Form(registry("objective")["masked"], "objective", lambda: None)
    rate = form.knobs["mask_rate"]
    assert isinstance(rate, ChoiceKnob)
    form.load({**form.value, "mask_rate": 0.2}, {**form.value, "mask_rate": 0.2})
    rate.picker.value = "linear"
    assert (rate.value["start"], rate.changes) == (0.2, 1), "another kind, and none of its knobs was touched"
    rate.picker.value = CONSTANT
    rate.part.input.source.value = "0.4"  # type: ignore[union-attr]
    rate.picker.value = "stages"
    assert rate.value["values"] == pytest.approx([0.4, 0.04])
    rate.picker.value = "linear"
    assert rate.value["start"] == 0.2, "what was shown before comes back"
