"""``PATH=VALUE`` texts."""

from __future__ import annotations

import pytest

from workbench.base.assignments import assignment, assignments
from workbench.base.errors import RecipeError


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("seed=3", ("seed", 3)),
        (" depth = full ", ("depth", "full")),
        ('data.paths=["a=b"]', ("data.paths", ["a=b"])),
        ("notes=", ("notes", "")),
        ("lr=9e\N{MINUS SIGN}4", ("lr", 0.0009)),
        ("notes=a \N{MINUS SIGN} b", ("notes", "a \N{MINUS SIGN} b")),
    ],
)
def test_values_are_json_or_text(text: str, pair: tuple[str, object]) -> None:
    assert assignment(text) == pair


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed", "'seed' is not PATH=VALUE, for example optimizer.lr=1e-3"),
        ("seed=" + "1" * 5000, "seed: .*a number with more digits than any knob takes"),
        ("seed=" + "[" * 100_000, "seed: .*nested deeper than any recipe is"),
    ],
)
def test_what_no_knob_takes_is_one_error(text: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        assignment(text)


def test_changes_are_texts_one_text_or_a_mapping() -> None:
    pairs = [("optimizer.lr", 0.001), ("budget", "400 steps")]
    assert assignments(["optimizer.lr=1e-3", "budget=400 steps"]) == pairs
    assert assignments("optimizer.lr=1e-3 'budget=400 steps'") == pairs
    assert assignments(dict(pairs)) == pairs
    assert assignments("") == assignments([]) == []


@pytest.mark.parametrize("given", [5, None, True, [5], b"seed=3", {3: "seed"}])
def test_what_are_no_changes_says_what_are(given: object) -> None:
    with pytest.raises(RecipeError, match=r"changes are a list of PATH=VALUE texts, such as \['optimizer.lr=1e-3'\]"):
        assignments(given)


def test_an_open_quote_is_named() -> None:
    with pytest.raises(RecipeError, match="cannot be taken apart: No closing quotation"):
        assignments("'seed=3")
