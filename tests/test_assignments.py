"""``PATH=VALUE`` texts."""

from __future__ import annotations

import pytest

from workbench.assignments import assignment
from workbench.errors import RecipeError


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("seed=3", ("seed", 3)),
        (" depth = full ", ("depth", "full")),
        ('data.paths=["a=b"]', ("data.paths", ["a=b"])),
        ("notes=", ("notes", "")),
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
