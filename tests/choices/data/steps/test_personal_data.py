"""Patterns of personal data: what is one and what only looks like one."""

from __future__ import annotations

import itertools

import pytest

from tests.choices.data.steps.judged import judged
from workbench.choices.data.steps import PersonalData
from workbench.choices.data.steps.personal_data import _is_card

FOUND = {
    "email": ["ann@example.org", "first.last+tag@mail.example.co.uk", "x_1@a-b.de"],
    "ip address": ["8.8.8.8", "2001:4860:4860::8888"],
    "phone number": ["+1 555 123 4567", "+49 (0)30 901820", "+44-20-7946-0958", "(555) 123-4567", "555-123-4567"],
    "card number": ["4111 1111 1111 1111", "378282246310005", "5555-5555-5555-4444"],
}
STAYS = [
    "user@localhost", "a @ b", "@handle", "127.0.0.1", "192.168.1.20", "::1", "version 1.2.3.4.5", "300.1.1.1",
    "12:30:45",
    "std::vector::begin", "4111 1111 1111 1112", "2024-11-28", "1999-2004", "978-3-16-148410-0", "3.14159265358979",
    "1,000,000,000", "pp. 123-456", "0000 0000 0000 0000",
]  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in FOUND.items() for text in texts])
def test_what_is_found(name: str, text: str) -> None:
    around = f"Before {text}, and after."
    (verdict,) = judged(PersonalData(), [around])
    assert verdict.text == f"Before <{name}>, and after."
    assert verdict.changes == {name: 1}
    (gone,) = judged(PersonalData(action="remove"), [around])
    assert (gone.removed, gone.detail) == ("personal data", f"{name} 1")
    knob = {"email": "emails", "ip address": "ip_addresses", "phone number": "phones", "card number": "cards"}[name]
    assert not judged(PersonalData(**{knob: False}), [around])[0].changes


@pytest.mark.parametrize("text", STAYS)
def test_what_stays(text: str) -> None:
    (verdict,) = judged(PersonalData(), [f"Before {text}, and after."])
    assert (verdict.text, verdict.changes) == (f"Before {text}, and after.", {})


def test_check_digits_against_a_slow_sum() -> None:
    for number in itertools.chain(range(4_000_000_000_000_000, 4_000_000_000_000_200), (1, 18, 26, 59)):
        total = 0
        for place, digit in enumerate(reversed(str(number))):
            value = int(digit) * (2 if place % 2 else 1)
            total += value - 9 if value > 9 else value
        assert _is_card(str(number)) == (total % 10 == 0)


def test_several_in_one_document_are_counted() -> None:
    (verdict,) = judged(PersonalData(), ["a@b.org and c@d.org from 8.8.4.4"])
    assert (verdict.text, verdict.changes) == ("<email> and <email> from <ip address>", {"email": 2, "ip address": 1})
