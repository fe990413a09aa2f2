"""Errors that teach: the value, the legal ones, the nearest, the way out."""

from __future__ import annotations

import pytest

from workbench import errors
from workbench.errors import unknown


def test_the_nearest_name_is_offered() -> None:
    said = unknown("optimizer.kind", "lanz", ["lans", "adamw"], "`workbench choices` lists them")
    assert said == (
        "optimizer.kind: unknown value 'lanz'; did you mean 'lans'? legal: adamw, lans. `workbench choices` lists them"
    )


def test_nothing_is_guessed_for_an_unrelated_value() -> None:
    said = unknown("", 7, ["adamw", "lans"])
    assert said == "unknown value '7'; legal: adamw, lans"


def test_no_legal_values_is_said() -> None:
    assert unknown("axis", "x", []).endswith("legal: (none)")


@pytest.mark.parametrize("kind", ["RecipeError", "DataError", "RunError"])
def test_what_the_request_got_wrong_is_a_value_error(kind: str) -> None:
    assert issubclass(getattr(errors, kind), errors.WorkbenchError)
    assert issubclass(errors.WorkbenchError, ValueError)


@pytest.mark.parametrize("kind", ["RunFailed", "TargetMissed"])
def test_what_a_good_request_led_to_is_not(kind: str) -> None:
    assert not issubclass(getattr(errors, kind), ValueError)
