"""C4's rules, each on a text that breaks it and on one that does not."""

from __future__ import annotations

import random

import pytest

from tests.choices.data.steps.judged import judged
from workbench.choices.data.steps import C4Rules

GOOD = "This is a sentence of prose. It has another one behind it! And a third that asks?"


@pytest.mark.parametrize(
    ("line", "reason", "knob"),
    [
        ("Home | About us | Our contacts here", "no sentence", {"sentence_lines": False}),
        ("A line that breaks off after some words...", "no sentence", {"sentence_lines": False}),
        ("Too short.", "short line", {"fewest_line_words": None}),
        (f"A word of {'x' * 1001} is too long.", "long word", {"longest_word": None}),
        ("Please switch on JavaScript in this browser.", "Javascript", {"javascript": False}),
        ("This page uses cookies for its own purposes.", "policy", {"policies": False}),
    ],
)
def test_lines_that_are_left_out(line: str, reason: str, knob: dict[str, None]) -> None:
    text = f"{GOOD}\n{line}\n\n{GOOD}"
    (verdict,) = judged(C4Rules(), [text])
    assert verdict.text == f"{GOOD}\n\n{GOOD}"
    assert verdict.changes == {reason: 1}
    (other,) = judged(C4Rules(**knob), [text])
    assert (other.text, other.changes) == (text, {})


@pytest.mark.parametrize(
    ("text", "reason", "knob"),
    [
        (f"{GOOD} Lorem ipsum dolor.", "lorem ipsum", {"filler": False}),
        (f"{GOOD} Then if (x) {{ y }} follows it.", "curly bracket", {"braces": False}),
        ("Only one sentence of five words.", "too few sentences", {"fewest_sentences": None}),
    ],
)
def test_documents_that_are_removed(text: str, reason: str, knob: dict[str, None]) -> None:
    assert judged(C4Rules(), [text])[0].removed == reason
    assert not judged(C4Rules(**knob), [text])[0].removed


def test_marks_of_citations_go() -> None:
    (verdict,) = judged(C4Rules(), [f"A fact.[12][citation needed] {GOOD}"])
    assert (verdict.text, verdict.changes) == (f"A fact. {GOOD}", {"citation mark": 2})


def test_nothing_left_is_a_reason_of_its_own() -> None:
    (verdict,) = judged(C4Rules(), ["Home\nAbout\nContact"])
    assert (verdict.removed, verdict.detail) == ("no line left", "no sentence 3")


def test_lines_of_random_texts_against_a_slow_version() -> None:
    draw = random.Random(0)
    words = ["cookie", "policy", "JavaScript", "use", "cookies", "word.", "end!", "a", 'quote"', "etc...", "x" * 1200]
    texts = [
        "\n".join(" ".join(draw.choices(words, [5] * 10 + [1], k=draw.randint(0, 9))) for _ in range(8))
        for _ in range(200)
    ]
    step = C4Rules(fewest_sentences=None)
    for text, verdict in zip(texts, judged(step, texts), strict=True):
        left = []
        for line in text.split("\n"):
            ends = line.endswith((".", "!", "?", '"')) and not line.endswith("...")
            fits = len(line.split()) >= 5 and "x" * 1001 not in line
            policy = "cookie policy" in line or "use cookies" in line
            if not line or (ends and fits and not policy and "JavaScript" not in line):
                left.append(line)
        expected = "\n".join(left).strip()
        assert verdict.text == expected
        assert bool(verdict.removed) == (not expected)
