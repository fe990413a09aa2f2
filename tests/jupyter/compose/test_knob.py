"""A row of a form: its value as typed, its mark, its errors; and what comes late into a form that another replaced."""

from __future__ import annotations

from workbench import presets
from workbench.choices.choice import Problem
from workbench.jupyter.compose.composer import Composer
from workbench.jupyter.compose.form import ChoiceKnob, Form
from workbench.jupyter.compose.inputs import Shape
from workbench.jupyter.compose.knob import Knob


def test_a_value_is_told_once_and_reset_to_where_it_began() -> None:
    heard: list[int] = []
    knob = Knob("data.rows", Shape("int"), "rows", "how many", 8, "linear", lambda: heard.append(1))
    knob.input.source.value = "many"
    assert (knob.value, knob.changes, heard) == ("many", 1, [1])
    assert knob.take([Problem("data.rows.0", "no number"), other]) == [other]
    knob.restore()
    assert (knob.value, knob.changes, heard) == (8, 0, [1, 1])
    assert (knob.show(["rows"]), knob.show(["columns"])) == (1, 0)


other = Problem("data.row", "elsewhere")


def box(composer: Composer, *names: str) -> Knob:
    """A knob of the optimizer as its form shows it now."""
    part: Form | Knob = composer.axes["optimizer"].part
    for name in names:
        assert isinstance(part, Form)
        knob = part.knobs[name]
        part = knob.part if isinstance(knob, ChoiceKnob) else knob
    assert isinstance(part, Knob)
    return part


def test_what_another_choice_brings_is_said_beside_what_was_changed() -> None:
    composer = Composer(presets.get("fast"))
    assert "with" not in composer.verdict.value
    composer.axes["optimizer"].picker.value = "lans"
    (section,) = [section for section in composer.sections if section.name == "optimizer"]
    paths = {each.path: (each.before, each.now) for each in section.brought}
    assert "1 knob changed" in composer.verdict.value
    assert f"+{len(paths)} with lans</span>" in composer.verdict.value
    assert f"1<i> changed</i> +{len(paths)}" in section.badge.value
    # As a comparison of the two recipes counts them.
    assert composer.recipe is not None
    both = {path for path, (old, new) in presets.get("fast").diff(composer.recipe).items() if None not in (old, new)}
    assert both - {"optimizer.kind"} <= set(paths)
    before, now = paths["optimizer.lr"]
    assert f"optimizer.lr {before} → {now}" in composer.verdict.value
    # Turned by hand, it is a change.
    box(composer, "lr").input.source.value = "0.003"
    assert "2 knobs changed" in composer.verdict.value
    assert f"+{len(paths) - 1} with lans" in composer.verdict.value
    composer.axes["optimizer"].restore()
    assert "with lans" not in composer.verdict.value


def test_what_is_typed_into_a_form_that_a_pick_has_replaced_goes_to_the_one_in_its_place() -> None:
    composer = Composer(presets.get("fast"))
    lr, warmup, beta = box(composer, "lr"), box(composer, "schedule", "warmup"), box(composer, "beta2")
    composer.presets.value = "lans"
    lans = presets.get("lans")
    assert composer.axes["optimizer"].kind == lans.optimizer.kind != "adamw"
    assert box(composer, "lr") is not lr
    # The page still shows the boxes of before: it has not heard of the pick.
    lr.input.source.value = "0.004"
    warmup.input.source.value = "0.3"
    assert composer.recipe == lans.with_(optimizer={"lr": 0.004, "schedule": {"warmup": 0.3}})
    assert "2 knobs changed" in composer.verdict.value
    composer.undo()
    assert composer.recipe == lans.with_(optimizer={"lr": 0.004})
    # Another kind alone, picked by hand.
    composer.axes["optimizer"].picker.value = "lion"
    assert "beta2" in composer.axes["optimizer"].part.knobs  # type: ignore[union-attr]
    beta.input.source.value = "0.95"
    assert composer.recipe is not None
    assert composer.recipe.to_dict()["optimizer"]["beta2"] == 0.95
