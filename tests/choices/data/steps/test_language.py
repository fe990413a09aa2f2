"""Scripts against Unicode's names of characters, languages against texts whose language is known."""

from __future__ import annotations

import json
import lzma
import unicodedata
from collections import Counter

import pytest

from tests.choices.data.steps.judged import evaluation_file, judged
from workbench.base.errors import RecipeError
from workbench.choices.data.steps import Language
from workbench.choices.data.steps.language import SCRIPTS, language_of, script_counts
from workbench.recipes.recipe import Recipe

NAMED = {"HAN": "CJK", "KANA": ("HIRAGANA", "KATAKANA"), "ORIYA": ("ORIYA", "ODIA"), "HANGUL": "HANGUL"}


@pytest.mark.parametrize("script", SCRIPTS)
def test_letters_have_the_script_that_their_name_says(script: str) -> None:
    names = NAMED.get(script.upper(), script.upper())
    checked = 0
    for code in range(0x21000):
        character = chr(code)
        if character.isalpha() and (found := unicodedata.name(character, "")).startswith(names):
            # Letters that stand for others (mathematical ones, in circles) are named after them and in other blocks.
            kind = any(word in found for word in ("LETTER", "CHARACTER", "SYLLABLE"))
            if code < 0xFB00 and kind and not 0x1D00 <= code < 0x1E00 and code != 0x214E:
                checked += 1
                got = script_counts(character)
                assert got[script] == 1 or code >= 0x2000, (hex(code), found, got)
            elif found.startswith("CJK UNIFIED"):
                checked += 1
                assert script_counts(character) == {"Han": 1}
    assert checked > 10


def test_digits_and_signs_belong_to_no_script() -> None:
    assert script_counts("42 + ٤٢ - १२, ...\n") == Counter()


def test_documents_in_other_scripts_and_languages_go() -> None:
    texts = [
        "The cat sat on the mat and it was fat.",
        "Кот сидит на окне и смотрит в сад.",
        "Der Hund ist nicht im Haus.",
    ]
    verdicts = judged(Language(scripts="Latin"), texts)
    assert [verdict.removed for verdict in verdicts] == ["", "mostly Cyrillic", ""]
    assert verdicts[1].facts == {"letters in Cyrillic": 26, "documents in ru": 1}
    assert [verdict.removed for verdict in judged(Language(languages="en"), texts)] == [
        "",
        "language ru",
        "language de",
    ]
    mixed = judged(Language(scripts=("Latin",), least_script_share=0.9), ["abcde fghij Кот"])
    assert mixed[0].detail == "77% of the letters in Latin"
    assert not any(verdict.removed for verdict in judged(Language(), texts)), "a look at the corpus"


def test_names_are_checked() -> None:
    with pytest.raises(RecipeError, match="did you mean 'Latin'"):
        Recipe().with_(data={"steps": [{"kind": "language", "scripts": ["Latn"]}]})


def test_languages_of_known_texts() -> None:
    for code in ("ar", "de", "el", "en", "ro", "ru", "th", "tr", "vi", "zh"):
        with lzma.open(evaluation_file(f"xquad.{code}.json.xz"), "rt", encoding="utf-8") as file:
            articles = json.load(file)["data"]
        texts = [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]
        right = sum(language_of(text, script_counts(text)) == code for text in texts)
        print(code, right, len(texts))
        assert right >= 0.97 * len(texts), code
