"""A text that stands where a number belongs: what is legal, and the nearest; whatever the knob is declared with."""

from __future__ import annotations

import pytest
from pydantic.fields import FieldInfo

from workbench.choices.choice import registry
from workbench.choices.knob import bounds_of, legal_bounds, not_a_number
from workbench.choices.progress import Budget
from workbench.recipes.recipe import Recipe

ROWS = registry("data")["embedded"].model_fields["batch_size"]
LAYERS = registry("architecture")["pre_ln"].model_fields["layers"]
MICRO = registry("execution")["native"].model_fields["micro_batch_size"]
SEED = Recipe.model_fields["seed"]


@pytest.mark.parametrize(
    ("field", "given", "why"),
    [
        (ROWS, "abc", "must be a whole number >= 1 and <= 1,048,576, or a schedule, got 'abc'"),
        (ROWS, "12.5", "must be a whole number >= 1 and <= 1,048,576, or a schedule, got '12.5'; nearest: 12 or 13"),
        (ROWS, " ", "must be a whole number >= 1 and <= 1,048,576, or a schedule, got nothing"),
        (LAYERS, "0.5", "must be a whole number >= 1 and <= 256, got '0.5'; nearest: 1"),
        (LAYERS, "nan", "must be a whole number >= 1 and <= 256, got 'nan'"),
        (SEED, "-0.5", "must be a whole number >= 0 and < 2,147,483,648, got '-0.5'; nearest: 0"),
        (Budget.model_fields["amount"], "much", "must be a number > 0, got 'much'"),
        # What pydantic reads as a number, and knobs that take words as well.
        (LAYERS, "12", ""),
        (Budget.model_fields["amount"], "1.5", ""),
        (MICRO, "abc", ""),
        (Budget.model_fields["unit"], "abc", ""),
    ],
)
def test_a_text_that_is_no_number_is_told_what_is_legal(field: FieldInfo, given: str, why: str) -> None:
    assert not_a_number(field, given) == why


def test_bounds_are_read_however_they_were_declared() -> None:
    assert bounds_of(LAYERS) == {"minimum": 1.0, "maximum": 256.0}
    assert bounds_of(ROWS) == {"minimum": 1.0, "maximum": 1048576.0}
    assert legal_bounds({}) == ""
    assert legal_bounds({"exclusiveMinimum": 0.0, "maximum": 0.25}) == "> 0 and <= 0.25"


@pytest.mark.parametrize(
    ("text", "path"), [("abc", "data.batch_size"), ("12.5", "data.batch_size"), ("linaer", "data.batch_size.kind")]
)
def test_a_text_for_a_knob_that_moves_is_a_schedule_only_where_one_may_be_meant(text: str, path: str) -> None:
    (found,) = Recipe.check({"data": {"kind": "embedded", "batch_size": text}})
    assert found.path == path
    assert ("did you mean 'linear'?" in found.message) == (text == "linaer")
