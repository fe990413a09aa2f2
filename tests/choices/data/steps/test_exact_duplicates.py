"""Exact duplicates against a comparison of every text with all before it."""

from __future__ import annotations

import random
import re

import pytest

from tests.choices.data.steps.judged import documents_of, judged, licence_texts
from workbench.choices.data.steps import ExactDuplicates


def normalised(text: str, step: ExactDuplicates) -> str:
    text = re.sub(r"\s+", " ", text).strip() if step.ignore_whitespace else text
    return text.casefold() if step.ignore_case else text


def texts(count: int) -> list[str]:
    """Short texts of few words, so that many are equal but for case or white space."""
    draw = random.Random(1)
    words = ["Yes", "yes", "no", "STRASSE", "straße", "日本"]
    return [draw.choice([" ", "  ", "\n"]).join(draw.choices(words, k=draw.randint(1, 3))) for _ in range(count)]


@pytest.mark.parametrize("knobs", [{}, {"ignore_case": False}, {"ignore_whitespace": False}])
def test_the_first_of_equal_documents_is_kept(knobs: dict[str, bool]) -> None:
    step, every = ExactDuplicates(**knobs), texts(300)
    verdicts = judged(step, every)
    for number, verdict in enumerate(verdicts):
        equal = [other for other in range(number) if normalised(every[other], step) == normalised(every[number], step)]
        assert verdict.removed == ("repeated" if equal else "")
        assert verdict.detail == (f"of document {equal[0]}" if equal else "")
    assert 0 < sum(bool(verdict.removed) for verdict in verdicts) < 300


@pytest.mark.parametrize(("by", "between"), [("line", "\n"), ("paragraph", "\n\n")])
def test_repeated_parts_are_left_out_of_what_comes_later(by: str, between: str) -> None:
    draw = random.Random(2)
    parts = [f"Sentence number {draw.randrange(60)}." for _ in range(400)]
    every = [between.join(parts[at : at + 5]) for at in range(0, 400, 5)]
    seen: set[str] = set()
    for text, verdict in zip(every, judged(ExactDuplicates(by=by), every), strict=True):
        left = []
        for part in text.split(between):
            if part not in seen:
                left.append(part)
            seen.add(part)
        assert bool(verdict.removed) == (not left)
        # What separates a part from the next goes with the part.
        assert verdict.text == between.join(left)
        assert verdict.changes.get(f"repeated {by}", 0) == (5 - len(left) if left else 0)


def test_short_parts_may_be_repeated() -> None:
    verdicts = judged(ExactDuplicates(by="line", shortest=4), ["{\n}\nlong line", "{\n}\nlong line\nother"])
    assert [verdict.text for verdict in verdicts] == ["{\n}\nlong line", "{\n}\nother"]


def test_numbers_of_the_corpus_are_kept() -> None:
    verdicts = list(ExactDuplicates().judge(documents_of(["a", "b", "a"], first=7)))
    assert [verdict.document.number for verdict in verdicts] == [7, 8, 9]
    assert verdicts[2].detail == "of document 7"


def test_copies_among_licence_texts() -> None:
    removed = [verdict for verdict in judged(ExactDuplicates(ignore_case=False), licence_texts()) if verdict.removed]
    assert len(removed) == 45
