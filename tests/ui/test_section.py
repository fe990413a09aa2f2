"""Sections: what is opened is shown, cards appear on "?", counts follow the knobs."""

from __future__ import annotations

from workbench.choices.choice import Problem
from workbench.ui.form import ChoiceKnob
from workbench.ui.section import Section


def made(opened: bool = False) -> tuple[Section, ChoiceKnob]:
    knob = ChoiceKnob("depth", "depth", "", "", {"kind": "full"}, lambda: None)
    return Section.of_choice("depth", knob, opened), knob


def test_the_heading_opens_the_body() -> None:
    section, knob = made()
    assert knob.widget not in section.widget.children
    section.toggle.value = True
    assert knob.widget in section.widget.children
    section.toggle.value = False
    assert knob.widget not in section.widget.children


def test_the_drop_down_is_in_the_heading_and_nowhere_else() -> None:
    section, knob = made(opened=True)
    assert knob.picker in section.heading.children
    assert knob.picker not in knob.widget.children


def test_the_card_follows_the_choice() -> None:
    section, knob = made()
    assert section.help is not None
    section.help.value = True
    card = section.widget.children[1]
    before = card.value
    knob.picker.value = "progressive_drop"
    section.update([])
    assert card.value != before
    section.help.value = False
    assert card not in section.widget.children


def test_counts_of_changes_and_problems() -> None:
    section, knob = made()
    section.update([])
    assert section.badge.value == ""
    knob.picker.value = "progressive_drop"
    section.update([])
    assert "1 changed" in section.badge.value
    section.update([Problem("depth.theta", "too small"), Problem("data.paths", "missing")])
    assert "1 wrong" in section.badge.value
    assert section.toggle.value
