"""The preview of an objective: every mark in words, the user's text escaped, nothing made before somebody looks."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

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
    marks = set(re.findall(r"class='wb-token wb-(\w+)", page)) - {"read"}
    assert marks
    assert all(f"{mark} {MARKS[mark].sign}</b> {MARKS[mark].words}" in page for mark in marks)
    assert "<b>th" not in page
    # In one draw all of them may be hidden.
    assert any("&lt;" in preview_html(recipe, SENTENCE, draw=draw) for draw in range(4))


@pytest.mark.parametrize(
    ("objective", "words", "marks"),
    [
        ({"kind": "hybrid", "causal_share": 0.25}, ("75% of the rows", "25% are read"), {"masked", "next"}),
        ({"sentence": "order", "mask_rate": 0.01}, ("two sentences are swapped",), {"swapped"}),
        ({"sentence": "next"}, ("second part is of another document",), {"masked"}),
        ("phases", ("Phase 1, causal:", "Phase 2, masked:"), {"masked", "next"}),
        ({"kind": "causal", "further_tokens": 2}, ("the 2 tokens behind the next one",), {"next"}),
        ({"kind": "selective", "keep": 0.4}, ("learns from 40% of these answers",), {"next"}),
        ("replaced_token", ("says of every token whether it is the true one",), {"masked"}),
        ("meta_controller", ("chooses another among candidates",), {"masked"}),
        ("diffusion", ("hides a share of its own",), {"masked"}),
        ("masked_permuted", ("In the order in which it is read",), {"permuted", "predicted"}),
    ],
)
def test_every_kind_of_row_is_shown_and_said(objective: Any, words: tuple[str, ...], marks: set[str]) -> None:
    page = preview_html(presets.get("fast").with_(objective=objective), SENTENCE)
    assert [text for text in words if text not in page] == []
    assert marks <= set(re.findall(r"class='wb-token wb-(\w+)", page))


def test_a_word_is_hidden_whole() -> None:
    recipe = presets.get("fast").with_(objective={"selection": "whole_word", "mask_rate": 0.3})
    page = preview_html(recipe, SENTENCE, draw=1)
    tokens = re.findall(r"class='wb-token wb-(\w+)( wb-joined)?'", page)
    assert {("masked", ""), ("read", " wb-joined")} <= {*tokens}
    # What continues a word that is hidden is hidden as well.
    assert all(mark == "read" for (mark, _), after in pairwise(tokens) if after == ("read", " wb-joined"))
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
    assert "wb-masked" in before
    composer.preview.again.click()
    assert composer.preview.picture.value != before
    composer.axes["objective"].picker.value = "causal"
    assert "wb-token wb-next" in composer.preview.picture.value
    composer.preview.sentence.value = ""
    assert "Type a sentence" in composer.preview.picture.value
