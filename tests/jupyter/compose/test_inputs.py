"""Controls: what is typed comes back as the value meant, and is never bent to fit."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel

from workbench.choices.choice import knob
from workbench.choices.schedules.schedule import Scheduled
from workbench.jupyter.compose.inputs import Shape, make_input, shape_of


class Every(BaseModel):
    """One field of every type that knobs have."""

    flag: bool = True
    count: int = knob(3, ge=1, le=9)
    rate: float = knob(0.5, gt=0, lt=1)
    name: str | None = None
    mode: Literal["a", "b"] = "a"
    paths: tuple[str, ...] = ()
    moving: Scheduled = 0.15
    bad: dict[str, int] = knob(default_factory=dict)


def control(name: str, default: Any, scale: str = "linear") -> Any:
    return make_input(shape_of(Every.model_fields[name]), name, "", default, scale)


def test_shapes_follow_from_annotations() -> None:
    shapes = {name: shape_of(info) for name, info in Every.model_fields.items() if name != "bad"}
    assert [shape.kind for shape in shapes.values()] == ["bool", "int", "float", "str", "literal", "list", "choice"]
    assert (shapes["count"].low, shapes["count"].high) == (1, 9)
    assert shapes["name"].optional
    assert shapes["mode"].options == ("a", "b")
    assert shapes["moving"].axis == "schedule"
    assert shapes["moving"].plain == Shape("float")


def test_a_type_without_a_control_is_an_error_not_a_text_box() -> None:
    with pytest.raises(TypeError, match="no control"):
        shape_of(Every.model_fields["bad"])


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("6.75e-3", 0.00675),
        (" 1 ", 1.0),
        ("1_000", 1000.0),
        ("abc", "abc"),
        ("", ""),
        ("-4", -4.0),
        ("9e\N{MINUS SIGN}4", 0.0009),
        ("\N{MINUS SIGN}4", -4.0),
    ],
)
def test_floats_as_typed(typed: str, value: Any) -> None:
    box = control("rate", 0.5)
    box.source.value = typed
    assert box.get() == value


@pytest.mark.parametrize(
    ("typed", "value"),
    [("30_000", 30000), ("1e6", 1000000), ("2.5", "2.5"), ("x", "x"), ("inf", "inf"), ("\N{MINUS SIGN}3", -3)],
)
def test_integers_as_typed(typed: str, value: Any) -> None:
    box = control("count", 3)
    box.source.value = typed
    assert box.get() == value
    assert type(box.get()) is type(value)


def test_empty_is_none_only_where_none_is_legal() -> None:
    box = control("name", None)
    assert box.get() is None
    box.source.value = "x"
    assert box.get() == "x"


def test_one_entry_per_line_keeps_commas_and_spaces() -> None:
    box = control("paths", ())
    box.source.value = "a, b.txt\n\n  c d.txt\n"
    assert box.get() == ["a, b.txt", "c d.txt"]


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e-8, 0.00675, 200.0, 1e300, -0.0])
def test_numbers_are_shown_without_loss(value: float) -> None:
    box = control("rate", 0.5)
    box.set(value)
    assert box.get() == value


def test_setting_calls_nobody_and_typing_calls_once() -> None:
    heard: list[int] = []
    box = control("rate", 0.5)
    box.changed = lambda: heard.append(1)
    box.set(0.25)
    assert heard == []
    box.source.value = "0.75"
    assert heard == [1]


def test_slider_and_box_follow_each_other() -> None:
    box = control("rate", 0.5)
    text, slider = box.widget.children
    box.set(0.25)
    assert slider.value == pytest.approx(0.25)
    slider.value = 0.75
    assert box.get() == 0.75
    text.value = "7"  # beyond the slider: it goes to its end, the text stays what was typed
    assert slider.value == pytest.approx(1.0)
    assert box.get() == 7.0


def test_a_slider_reaches_what_is_sensible_and_the_box_what_is_legal() -> None:
    price = make_input(Shape("float", low=0.0, high=10.0), "price", "", 0.5, "linear")
    text, slider = price.widget.children
    assert (slider.min, slider.max) == (0.0, 2.0)
    text.value = "8"
    assert price.get() == 8.0
    share = make_input(Shape("float", low=0.0, high=1.0), "rate", "", 0.1, "linear")
    assert share.widget.children[1].max == 1.0


def test_logarithmic_integers_move_in_powers_of_two() -> None:
    box = make_input(Shape("int", low=8, high=65536), "n", "", 128, "log")
    text, slider = box.widget.children
    slider.value = 256
    assert text.value == "256"
    text.value = "100"  # no power of two, and still exactly what was typed
    assert box.get() == 100


def test_a_list_of_choices_is_json_or_kinds_one_per_line() -> None:
    """What the phases of a schedule look like in the form."""
    from workbench.choices.schedules import Phases

    info = Phases.model_fields["parts"]
    control = make_input(shape_of(info), "parts", "", [], "linear")
    parts = Phases().model_dump(mode="json")["parts"]
    control.set(parts)
    assert control.get() == parts
    control.source.value = 'cosine\n{"kind": "linear", "end": 0.5}\n'
    assert control.get() == ["cosine", {"kind": "linear", "end": 0.5}]
    assert [part.kind for part in Phases(parts=control.get()).parts] == ["cosine", "linear"]


def test_an_empty_list_is_none_where_that_is_legal() -> None:
    optional = make_input(Shape("list", optional=True, item="int"), "", "", None, "linear")
    optional.set(None)
    assert optional.get() is None
    optional.source.value = "3\n4"
    assert optional.get() == [3, 4]
    required = make_input(Shape("list", item="int"), "", "", [], "linear")
    assert required.get() == []


def test_a_moving_knob_keeps_the_bounds_of_its_number() -> None:
    from workbench.choices.data import Embedded

    plain = shape_of(Embedded.model_fields["batch_size"]).plain
    assert plain == Shape("int", low=1, high=1 << 20)
