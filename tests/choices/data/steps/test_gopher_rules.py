"""Gopher's rules against slow versions of each."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.choices.data.steps.judged import judged
from workbench.choices.data.steps import GopherRules

OFF = {name: None for name in GopherRules.model_fields if name != "kind"} | {
    "most_in_top_phrases": (), "most_in_repeated_phrases": (),
}  # fmt: skip
WORDS = [
    "the", "of", "Have", "that", "#tag", "##", "wait...", "…", "a", "incomprehensibilities", "7", "--", "river",
]  # fmt: skip


def texts(count: int, seed: int = 0) -> list[str]:
    """Texts of every shape: lists, repeated lines and paragraphs, phrases over and over."""
    draw, every = random.Random(seed), []
    for _ in range(count):
        words = draw.sample(WORDS, draw.randint(2, len(WORDS)))
        lines = [
            draw.choice(["", "", "- ", "• "]) + " ".join(draw.choices(words, k=draw.randint(1, 8)))
            for _ in range(draw.randint(1, 6))
        ]
        lines += draw.choices(lines, k=draw.randint(0, 4))
        every.append("".join(line + draw.choice(["\n", "\n\n"]) for line in lines))
    return every


def lines_of(text: str, between: str) -> list[str]:
    return [line.strip() for line in text.split(between) if line.strip()]


def repeated(parts: list[str]) -> list[str]:
    return [part for number, part in enumerate(parts) if part in parts[:number]]


def top_phrase(text: str, n: int) -> float:
    words = text.split()
    phrases = [" ".join(words[at : at + n]) for at in range(len(words) - n + 1)]
    best = max(((phrases.count(phrase), len(phrase)) for phrase in phrases), default=(0, 0))
    return min(1.0, best[0] * best[1] / len(text)) if best[0] > 1 else 0.0


def repeated_phrases(text: str, n: int) -> float:
    words, seen, characters, at = text.split(), [], 0, 0
    while at + n <= len(words):
        phrase = " ".join(words[at : at + n])
        if phrase in seen:
            characters, at = characters + len(phrase), at + n
        else:
            seen.append(phrase)
            at += 1
    return characters / len(text)


def share(flags: list[bool]) -> float:
    return sum(flags) / len(flags)


def ratio(part: float, text: str) -> float:
    return part / len(text.split())


SLOW: dict[str, tuple[Callable[[str], float], bool, float]] = {
    # knob: (measure, True if less than the limit breaks it, limit)
    "fewest_words": (lambda t: len(t.split()), True, 12),
    "most_words": (lambda t: len(t.split()), False, 20),
    "shortest_mean_word": (lambda t: ratio(len("".join(t.split())), t), True, 4),
    "longest_mean_word": (lambda t: ratio(len("".join(t.split())), t), False, 5),
    "most_hashes": (lambda t: ratio(t.count("#"), t), False, 0.1),
    "most_ellipses": (lambda t: ratio(t.count("...") + t.count("…"), t), False, 0.1),
    "most_bullet_lines": (lambda t: share([line[0] in "•-" for line in lines_of(t, "\n")]), False, 0.5),
    "most_ellipsis_lines": (
        lambda t: share([line.endswith("...") or line[-1] == "…" for line in lines_of(t, "\n")]), False, 0.3,
    ),
    "fewest_letter_words": (lambda t: share([any(c.isalpha() for c in word) for word in t.split()]), True, 0.8),
    "fewest_stop_words": (lambda t: len({"the", "of", "have", "that"} & {*t.lower().split()}), True, 2),
    "most_repeated_lines": (lambda t: len(repeated(x := lines_of(t, "\n"))) / len(x), False, 0.3),
    "most_repeated_paragraphs": (lambda t: len(repeated(x := lines_of(t, "\n\n"))) / len(x), False, 0.3),
    "most_in_repeated_lines": (lambda t: len("".join(repeated(lines_of(t, "\n")))) / len(t), False, 0.2),
    "most_in_repeated_paragraphs": (lambda t: len("".join(repeated(lines_of(t, "\n\n")))) / len(t), False, 0.2),
}  # fmt: skip


@pytest.mark.parametrize("name", SLOW)
def test_each_rule_alone(name: str) -> None:
    measure, below, limit = SLOW[name]
    every = texts(200)
    step = GopherRules(**(OFF | {name: limit}))
    for text, verdict in zip(every, judged(step, every), strict=True):
        value = measure(text)
        # Fractions may differ in the last bit.
        if value != pytest.approx(limit):
            assert bool(verdict.removed) == (value < limit if below else value > limit), (value, text)
    broken = sum(bool(verdict.removed) for verdict in judged(step, every))
    assert 0 < broken < 200


@pytest.mark.parametrize(
    ("name", "first", "slow"),
    [("most_in_top_phrases", 2, top_phrase), ("most_in_repeated_phrases", 5, repeated_phrases)],
)
def test_phrases(name: str, first: int, slow: Callable[[str, int], float]) -> None:
    every = texts(200, seed=1)
    for place, n in enumerate((first, first + 1, first + 2)):
        step = GopherRules(**(OFF | {name: (*[1.0] * place, 0.2)}))
        for text, verdict in zip(every, judged(step, every), strict=True):
            if slow(text, n) != pytest.approx(0.2):
                assert bool(verdict.removed) == (slow(text, n) > 0.2), (slow(text, n), text)
        assert 0 < sum(bool(verdict.removed) for verdict in judged(step, every)) < 200


def test_prose_stays_and_the_first_broken_rule_is_the_reason() -> None:
    prose = " ".join(f"The {word} of the house was to be seen from that hill, and they left." for word in "abcdefghij")
    prose += " Nothing else was worth a visit when summer had gone, with rain on every road we knew."
    few, list_ = judged(GopherRules(), ["Too few words.", "- item of that list to have\n" * 20])
    assert (few.removed, few.detail) == ("words", "3 < 50")
    assert (list_.removed, list_.detail) == ("bullet lines", "1 > 0.9")
    assert not judged(GopherRules(most_in_top_phrases=(), most_in_repeated_phrases=()), [prose])[0].removed


def test_every_rule_may_be_off() -> None:
    assert not any(verdict.removed for verdict in judged(GopherRules(**OFF), texts(50)))
