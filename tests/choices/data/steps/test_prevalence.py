"""Mean log frequency of words against a slow version."""

from __future__ import annotations

import math
import random

import pytest

from tests.choices.data.steps.judged import documents_of, judged
from workbench.choices.data.steps import Prevalence, prevalence


def scores(texts: list[str]) -> list[float]:
    words = [["".join(c for c in word if c.isalpha()).lower() for word in text.split()] for text in texts]
    every = [word for each in words for word in each if word]
    found = []
    for each in words:
        logs = [math.log(every.count(word) / len(every)) for word in each if word]
        found.append(sum(logs) / len(logs) if logs else math.log(1 / len(every)))
    return found


def mixed(count: int) -> list[str]:
    draw = random.Random(0)
    return [
        " ".join(f"{'abcdefghijklmnopqrst'[int(draw.triangular(0, 20, 0))]}!" for _ in range(9)) for _ in range(count)
    ]


@pytest.mark.parametrize(("end", "sign"), [("rarest", 1), ("commonest", -1)])
def test_the_share_at_one_end_goes(end: str, sign: int) -> None:
    texts = [*mixed(80), "7 8 9"]
    expected = scores(texts)
    verdicts = judged(Prevalence(share=0.2, end=end), texts)
    gone = [number for number, verdict in enumerate(verdicts) if verdict.removed]
    assert len(gone) == 16
    limit = sorted(sign * score for score in expected)[15]
    assert all(sign * expected[number] <= limit + 1e-9 for number in gone)
    for number in gone:
        assert float(verdicts[number].detail.split()[-1]) == pytest.approx(expected[number], abs=0.006)


def test_more_words_than_memory_holds_lose_those_seen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prevalence, "MOST_WORDS", 3)
    counts = prevalence.word_counts(documents_of(["a a b", "a c", "d e", "a"]))
    assert counts["a"] == 4
    assert counts["b"] == 0
