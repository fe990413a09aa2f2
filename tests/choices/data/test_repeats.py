"""Repeated runs of words against sets of tuples; what repeats training goes from the held-out side."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from workbench.choices.data import repeats as module
from workbench.choices.data.repeats import RUN_WORDS, Repeats, runs_of


def words_of(text: str) -> list[bytes]:
    """Words as the module means them, by a regular expression: wide characters alone, ASCII without case."""
    wide = r"[\u3000-\uffff\U00010000-\U0010ffff]"
    return [
        word.encode().lower()[:24]
        for word in re.findall(rf"{wide}[^\W\u3000-\U0010ffff_]*|(?:(?!{wide})[^\W_])+", text)
    ]


def slow_runs(text: str) -> list[tuple[bytes, ...]]:
    words = words_of(text)
    return [tuple(words[i : i + RUN_WORDS]) for i in range(len(words) - RUN_WORDS + 1)]


def sentence(draw: random.Random, count: int = 20) -> str:
    letters = "abcdefghij"
    return " ".join("".join(draw.choices(letters, k=draw.randint(1, 9))) for _ in range(count))


def test_runs_are_those_of_the_slow_way_and_end_with_their_text() -> None:
    draw = random.Random(0)
    texts = [sentence(draw, n) for n in (0, 1, 12, 13, 14, 40)] + [
        "a, B! c-d " * 9,
        "言葉が続く文章です" * 3,
        "Größe und Maß " * 9,
    ]
    found = runs_of(texts)
    slow = [run for text in texts for run in slow_runs(text)]
    assert len(found.hash_G) == len(slow)
    # Equal runs have equal hashes, different ones different.
    assert len(set(found.hash_G.tolist())) == len(set(slow)) == len(set(zip(found.hash_G.tolist(), slow, strict=True)))
    assert np.array_equal(runs_of(["A b, C " * 9]).hash_G, runs_of(["a B c." * 9]).hash_G)


def filtered(training: list[str], heldout: list[str]) -> tuple[list[str], Repeats]:
    repeats = Repeats(heldout)
    assert list(repeats.watch(training)) == training
    return [repeats.without(text) for text in heldout], repeats


def test_paragraphs_that_repeat_training_text_go() -> None:
    draw = random.Random(1)
    known, own, other = sentence(draw), [sentence(draw) for _ in range(6)], sentence(draw)
    edited = f"{sentence(draw, 5)} {' '.join(known.upper().split()[2:16])}, {sentence(draw, 5)}"
    heldout = ["\n".join([own[0], known, own[1]]), "\n".join([*own[2:5], edited]), own[5], known]
    left, repeats = filtered([other, f"begin {known} end"], heldout)
    assert left == ["\n".join(own[:2]), "\n".join(own[2:5]), own[5], ""]
    assert 0 < repeats.share < 0.5
    assert repeats.overlap == 0
    # Twelve words in a row are not yet a repetition.
    short = " ".join(known.split()[:12])
    assert filtered([known], [f"{own[0]}\n{short}\n{own[1]}"])[0] == [f"{own[0]}\n{short}\n{own[1]}"]


def test_text_that_is_repetition_by_nature_stays_and_says_so() -> None:
    left, repeats = filtered(["a b c d " * 30], ["b c d a " * 30])
    assert left == ["b c d a " * 30]
    assert repeats.share == repeats.overlap == 1.0


def test_a_sample_of_the_runs_finds_long_repetitions(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(3)
    monkeypatch.setattr(module, "MOST_RUNS", 2000)
    own = [sentence(draw, 100) for _ in range(200)]
    copied = [sentence(draw, 100) for _ in range(20)]
    left, repeats = filtered(copied, [f"{a}\n{b}" for a, b in zip(own, copied * 10, strict=True)][:40])
    assert left == own[:40]
    assert repeats.overlap == 0
