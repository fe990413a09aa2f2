"""Sections: what is opened is shown, cards appear on "?", counts follow the knobs."""

from __future__ import annotations

from workbench.choices.choice import Problem
from workbench.jupyter.compose.form import ChoiceKnob
from workbench.jupyter.compose.section import Section


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


def test_the_question_mark_is_heard_in_and_out() -> None:
    heard: list[bool] = []
    knob = ChoiceKnob("depth", "depth", "", "", {"kind": "full"}, lambda: None)
    section = Section.of_choice("depth", knob, toggled=heard.append)
    assert section.help is not None
    section.help.value = True
    section.help.value = False
    assert heard == [True, False]


def test_a_search_opens_what_it_finds_and_closes_it_again() -> None:
    section, knob = made()
    knob.picker.value = "progressive_drop"
    section.toggle.value = False
    assert section.search(["limit", "theta"]) == 1
    assert knob.widget in section.widget.children
    assert section.search(["theta", "no"]) == 0
    assert knob.widget not in section.widget.children
    section.search([])
    assert knob.widget not in section.widget.children
    assert not section.toggle.value


def test_counts_of_changes_and_problems() -> None:
    section, knob = made()
    section.update([], section.changes)
    assert section.badge.value == ""
    knob.picker.value = "progressive_drop"
    section.update([], section.changes)
    assert "1<i> changed</i>" in section.badge.value
    section.update([Problem("depth.theta", "too small"), Problem("data.paths", "missing")], section.changes)
    assert "1 to fix" in section.badge.value
    assert section.toggle.value
