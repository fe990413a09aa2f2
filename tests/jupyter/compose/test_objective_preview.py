"""The preview of an objective: every mark in words, the user's text escaped, nothing made before somebody looks."""

from __future__ import annotations

import re

import pytest

from workbench import presets
from workbench.choices.choice import registry
from workbench.choices.data.prepare import prepare
from workbench.choices.objectives.preview import MARKS
from workbench.jupyter.compose.composer import Composer
from workbench.jupyter.compose.objective_preview import encoded, preview_html
from workbench.recipes.recipe import Recipe

SENTENCE = "The weatherman forecasts <b>thunderstorms</b>. Nobody believes him, and the rain begins at once."


@pytest.mark.parametrize("kind", registry("objective"))
def test_every_objective_is_shown_with_the_meaning_of_its_marks(kind: str) -> None:
    recipe = presets.get("fast").with_(objective=kind)
    page = preview_html(recipe, SENTENCE)
    marks = set(re.findall(r"<rt>(\w+)</rt>", page))
    assert marks
    assert all(f"{mark}</b>: {MARKS[mark].words}" in page for mark in marks)
    assert "<b>th" not in page
    # In one draw all of them may be hidden.
    assert any("&lt;" in preview_html(recipe, SENTENCE, draw=draw) for draw in range(4))


def test_a_word_is_hidden_whole() -> None:
    recipe = presets.get("fast").with_(objective={"selection": "whole_word", "mask_rate": 0.3})
    page = preview_html(recipe, SENTENCE, draw=1)
    # A continuation has no space before it: behind a hidden token it is hidden as well.
    assert "</ruby><span>" not in page
    assert "<rt>masked</rt>" in page
    assert page != preview_html(recipe, SENTENCE, draw=2)


def test_tokens_are_the_tokenizers_own_once_there_is_one(learnable: list[str]) -> None:
    recipe = presets.fast().with_assignments(learnable)
    prepared = prepare(recipe.data, say=lambda line: None)
    tokens, vocabulary, note = encoded(recipe.data, "a<b")
    assert (vocabulary, note) == (prepared.vocabulary, "")
    assert (tokens[0], tokens[-1]) == (vocabulary.cls, vocabulary.sep)
    other = Recipe(data={"kind": "files", "paths": ["nowhere.txt"]})
    assert "Words stand for tokens" in encoded(other.data, "a b")[2]


def test_the_preview_follows_the_knobs_while_its_section_is_open() -> None:
    composer = Composer(presets.get("fast"))
    assert composer.preview.picture.value == "", "nobody has opened the section"
    section = next(section for section in composer.sections if section.name == "objective")
    section.toggle.value = True
    before = composer.preview.picture.value
    assert "<rt>" in before
    composer.preview.again.click()
    assert composer.preview.picture.value != before
    composer.axes["objective"].picker.value = "causal"
    assert "<rt>next</rt>" in composer.preview.picture.value
    composer.preview.sentence.value = ""
    assert "Type a sentence" in composer.preview.picture.value
