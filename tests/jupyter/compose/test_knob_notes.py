"""Marks beside a knob: there while there is something to say, gone without a trace afterwards."""

from __future__ import annotations

import ipywidgets

from workbench.jupyter.compose.knob_notes import Note, Reset


def test_a_note_comes_and_goes() -> None:
    row = ipywidgets.Box([ipywidgets.Text()])
    note = Note(row)
    note.say("")
    assert len(row.children) == 1
    note.say("<b>wrong</b>")
    note.say("3 < 4")
    assert [child.value for child in row.children[1:]] == ["3 &lt; 4"]
    assert "lab-bad" in row._dom_classes
    line = row.children[1]
    note.say("")
    assert len(row.children) == 1
    assert "lab-bad" not in row._dom_classes
    assert line.comm is None, "closed, not merely hidden"


def test_a_doubt_is_no_error_and_one_gives_way_to_the_other() -> None:
    row = ipywidgets.Box([ipywidgets.Text()])
    note = Note(row)
    for message, doubt in (("far off", True), ("wrong", False), ("far off", True)):
        note.say(message, doubt=doubt)
        line = row.children[1]
        assert ["lab-error" in line._dom_classes, "lab-doubt" in line._dom_classes] == [not doubt, doubt]
        assert ("lab-bad" in row._dom_classes) != doubt
    note.say("")
    assert len(row.children) == 1


def test_a_reset_says_where_it_leads_and_stands_in_its_place() -> None:
    heard: list[int] = []
    row = ipywidgets.Box([ipywidgets.Text(), ipywidgets.HTML()])
    reset = Reset(row, lambda: heard.append(1), 1)
    reset.offer("back to 3")
    reset.offer("back to 4")
    assert [type(child).__name__ for child in row.children] == ["Text", "Button", "HTML"]
    assert row.children[1].tooltip == "back to 4"
    assert "lab-changed" in row._dom_classes
    row.children[1].click()
    assert heard == [1]
    reset.offer("")
    assert [type(child) for child in row.children] == [ipywidgets.Text, ipywidgets.HTML]
    assert "lab-changed" not in row._dom_classes


def test_a_moved_reset_appears_at_the_end_of_its_new_row() -> None:
    row, heading = ipywidgets.Box([ipywidgets.Text()]), ipywidgets.Box([ipywidgets.Text(), ipywidgets.HTML()])
    reset = Reset(row, lambda: None, 1)
    reset.move(heading)
    reset.offer("back")
    assert len(row.children) == 1
    assert isinstance(heading.children[-1], ipywidgets.Button)
