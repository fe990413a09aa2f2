"""Errors that teach: the value, the legal ones, the nearest, the way out."""

from __future__ import annotations

import pytest

from workbench.base import errors
from workbench.base.errors import RunError, check_known, first_line, typed_line, unknown


def test_the_nearest_name_is_offered() -> None:
    said = unknown("optimizer.kind", "lanz", ["lans", "adamw"], "`workbench choices` lists them")
    assert said == (
        "optimizer.kind: unknown value 'lanz'; did you mean 'lans'? legal: adamw, lans. `workbench choices` lists them"
    )


@pytest.mark.parametrize(("usual", "ours"), [("mslt", "multi_stage"), ("PLD", "progressive_drop")])
def test_a_papers_name_leads_to_ours(usual: str, ours: str) -> None:
    assert f"did you mean '{ours}'?" in unknown("depth.kind", usual, ["full", "multi_stage", "progressive_drop"])
    assert "did you mean" not in unknown("optimizer.kind", usual, ["adamw", "lans"]), "of another axis"


def test_a_constant_schedule_is_explained() -> None:
    said = unknown("schedule.kind", "constant", ["cosine", "linear"])
    assert said.endswith("did you mean 'linear'? legal: cosine, linear. A constant is linear, from start 1 to end 1")


def test_nothing_is_guessed_for_an_unrelated_value() -> None:
    said = unknown("", 7, ["adamw", "lans"])
    assert said == "unknown value '7'; legal: adamw, lans"


def test_no_legal_values_is_said() -> None:
    assert unknown("axis", "x", []).endswith("legal: (none)")


def test_a_legal_name_passes_and_another_is_refused_in_the_same_words() -> None:
    check_known("axis", "data", ["data", "depth"])
    with pytest.raises(RunError, match=r"unknown value 'dept'; did you mean 'depth'.* a way out"):
        check_known("axis", "dept", ["data", "depth"], RunError, "a way out")


def test_an_error_of_others_in_one_line() -> None:
    assert [first_line(OSError(text)) for text in ("\n no route\nthe rest", "")] == ["no route", "OSError"]
    assert [typed_line(OSError(text)) for text in ("no route\nthe rest", "")] == ["OSError: no route", "OSError"]


@pytest.mark.parametrize("kind", ["RecipeError", "DataError", "RunError"])
def test_what_the_request_got_wrong_is_a_value_error(kind: str) -> None:
    assert issubclass(getattr(errors, kind), errors.WorkbenchError)
    assert issubclass(errors.WorkbenchError, ValueError)


@pytest.mark.parametrize("kind", ["RunFailed", "TargetMissed"])
def test_what_a_good_request_led_to_is_not(kind: str) -> None:
    assert not issubclass(getattr(errors, kind), ValueError)
