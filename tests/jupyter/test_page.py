"""The invisible first child: what it brings along, and that it does not stay behind."""

from __future__ import annotations

import gc
import weakref

import pytest

from tests.jupyter.messages import hear, say
from workbench.jupyter.bundles import script
from workbench.jupyter.compose.composer import Composer
from workbench.jupyter.compose.form import ChoiceKnob
from workbench.jupyter.compose.knob_help import path_class
from workbench.jupyter.compose.section import Section
from workbench.jupyter.page import Page


def test_it_brings_style_shortcut_guard_and_words_for_screen_readers() -> None:
    page = Page()
    assert "data-lm-suppress-shortcuts" in page._code
    assert "aria-" in page._code
    assert ".lab-root" in page._css
    assert page.get_state()["_css"] == page._css, "the page gets the style itself, never a path of this machine"
    page.close()


def test_the_page_finds_a_knob_by_the_class_of_its_row_or_heading() -> None:
    knob = ChoiceKnob("depth", "depth", "", "", {"kind": "full"}, lambda: None)
    section = Section.of_choice("depth", knob)
    for row in (knob.widget, section.heading):
        assert [name for name in row._dom_classes if name.startswith(path_class(""))] == ["lab-path:depth"]
    assert f'"{path_class("")}"' in script("page")


def test_every_root_has_one() -> None:
    composer = Composer()
    assert [isinstance(child, Page) for child in composer.children] == [True, False, False, False], "first of all"


def test_what_the_page_asks_for_is_heard_and_nonsense_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[dict[str, object]] = []
    page = Page(heard.append)
    for content in ({"do": "undo"}, "undo", None):
        say(page, content)
    assert heard == [{"do": "undo"}, {}, {}]
    sent = hear(page, monkeypatch)
    page.point_at("seed", focus=True)
    assert sent == [{"point": "seed", "focus": True}]
    page.close()


def test_a_closed_page_is_collected() -> None:
    page = Page()
    trace = weakref.ref(page)
    page.close()
    del page
    gc.collect()
    assert trace() is None
