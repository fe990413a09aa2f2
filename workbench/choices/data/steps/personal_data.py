"""E-mail and IP addresses, telephone and card numbers: masked, or reason to remove the document."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from typing import Any, Literal

from workbench.choices.choice import knob
from workbench.choices.data.steps.step import Document, Step, Verdict, removed

_EMAIL = re.compile(r"\b[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b")
_IP = re.compile(r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:]*)(?![\w:]|\.\d)")
_CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-]|\.\d)")
_PHONE = re.compile(
    r"(?<![\w.+-])(?:\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,4}(?:[ .-]?\d{2,4}){1,4}"
    r"|\(\d{3}\) ?\d{3}[ .-]\d{4}|\d{3}[.-]\d{3}[.-]\d{4})(?![\w-]|\.\d)"
)


class PersonalData(Step):
    """Replaces e-mail and IP addresses, telephone and card numbers by a mark, or removes documents that hold any.

    Source: the masks of C4 in Soldaini et al. 2024, Dolma (arXiv 2402.00159), section 5.3; Luhn's sum for cards.
    """

    kind: Literal["personal_data"] = "personal_data"
    action: Literal["mask", "remove"] = knob("mask", "replace what is found by a mark, or remove the document")
    emails: bool = knob(True, "e-mail addresses")
    ip_addresses: bool = knob(True, "addresses of machines, IPv4 and IPv6, but local ones")
    phones: bool = knob(True, "telephone numbers: international, or written as in North America")
    cards: bool = knob(True, "card numbers: 13 to 19 digits with a right check digit")

    def judge(self, documents: Iterable[Document]) -> Iterator[Verdict]:
        """Yield the verdicts, each from the document alone."""
        for document in documents:
            text, found = self.masked(document.text)
            if found and self.action == "remove":
                detail = ", ".join(f"{name} {count}" for name, count in found.items())
                yield removed(document, "personal data", detail)
            else:
                yield Verdict(document, text, changes=found)

    def masked(self, text: str) -> tuple[str, dict[str, int]]:
        """Return a text with marks, and how many of each kind.

        Example:
            >>> PersonalData().masked("Write to ann@example.org.")
            ('Write to <email>.', {'email': 1})
        """
        found: Counter[str] = Counter()
        patterns = {
            "email": (self.emails, _EMAIL, lambda match: True),
            "ip address": (self.ip_addresses, _IP, _is_public),
            # Before telephones: both are digits in groups.
            "card number": (self.cards, _CARD, _is_card),
            "phone number": (self.phones, _PHONE, _is_phone),
        }
        for name, (wanted, pattern, is_one) in patterns.items():
            if wanted:
                text = pattern.sub(_Mask(name, is_one, found), text)
        return text, dict(found)


class _Mask:
    """Replaces a match that is what it looks like, and counts it."""

    def __init__(self, name: str, is_one: Any, found: Counter[str]) -> None:
        self._name, self._is_one, self._found = name, is_one, found

    def __call__(self, match: re.Match[str]) -> str:
        if not self._is_one(match[0]):
            return match[0]
        self._found[self._name] += 1
        return f"<{self._name}>"


def _is_public(text: str) -> bool:
    """Return whether a text is the address of a machine that others can reach."""
    try:
        return ip_address(text).is_global
    except ValueError:
        return False


def _is_card(text: str) -> bool:
    """Return whether digits have a right check digit (Luhn: every second doubled, the sum divisible by 10)."""
    digits = [int(digit) for digit in text if digit.isdigit()]
    doubled = sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return any(digits) and (sum(digits[-1::-2]) + doubled) % 10 == 0


def _is_phone(text: str) -> bool:
    """Return whether a text has as many digits as a telephone number (E.164: up to 15)."""
    return 8 <= sum(map(str.isdigit, text)) <= 15
