"""Budgets read from text, and progress in every unit."""

from __future__ import annotations

import pytest

from workbench.accelerated.arguments import budget_of
from workbench.base.errors import RecipeError
from workbench.choices.progress import AmountError, Budget, Progress, parse_budget
from workbench.experiments.budget import parse


@pytest.mark.parametrize(
    ("text", "amount", "unit"),
    [
        ("200 steps", 200, "steps"),
        ("1 step", 1, "steps"),
        ("1,000 STEPS", 1000, "steps"),
        ("1_000steps", 1000, "steps"),
        ("2k steps", 2000, "steps"),
        ("1e3 steps", 1000, "steps"),
        ("1.5M tokens", 1.5e6, "tokens"),
        ("2 B tokens", 2e9, "tokens"),
        ("3Mtokens", 3e6, "tokens"),
        ("90 s", 90, "seconds"),
        ("90s", 90, "seconds"),
        ("2 min", 120, "seconds"),
        ("2min", 120, "seconds"),
        ("1.5 minutes", 90, "seconds"),
        ("2 hours", 7200, "seconds"),
        ("0.5h", 1800, "seconds"),
    ],
)
def test_text(text: str, amount: float, unit: str) -> None:
    assert parse_budget(text) == {"amount": pytest.approx(amount), "unit": unit}
    assert Budget.model_validate(text).unit == unit


def test_epochs_are_refused_with_what_to_write_instead() -> None:
    with pytest.raises(ValueError, match="count steps, tokens or seconds; an epoch has as many tokens as the training"):
        parse_budget("2 epochs")


@pytest.mark.parametrize(
    "text",
    [
        "", "200", "steps", "200 stepz", "two steps", "1.2.3 steps", "- 5 steps", "5 m", "5kk tokens", "5 mm tokens",
        "500 ms", "2k s",
    ],
)  # fmt: skip
def test_text_that_is_no_budget(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a number and a unit; write '200 steps'"):
        parse_budget(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.5 steps", "'1.5 steps' is no whole number of steps; nearest: 1 or 2"),
        ("0.5 steps", "nearest: 1"),
        ("1.0001k tokens", "is no whole number of tokens; nearest: 1000 or 1001"),
        ("1e99 tokens", r"'1e99 tokens' is more than any run spends; write at most 1e\+15 tokens"),
        ("1e999 s", "is more than any run spends"),
    ],
)
def test_amounts_that_no_run_spends(text: str, message: str) -> None:
    with pytest.raises(AmountError, match=message):
        parse_budget(text)
    with pytest.raises(ValueError, match=message):
        Budget.model_validate(text)
    with pytest.raises(RecipeError, match=message):
        parse(text)
    with pytest.raises(RecipeError, match=message):
        budget_of(text, [])


def test_thousands_of_steps_are_whole() -> None:
    assert parse_budget("1.001k steps")["amount"] == 1001


@pytest.mark.parametrize("fields", [{"amount": 0}, {"amount": -1}, {"amount": float("inf")}, {"unit": "epochs"}])
def test_budgets_out_of_bounds(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"greater than 0|finite|'steps', 'tokens' or 'seconds'"):
        Budget(**fields)  # type: ignore[arg-type]


def test_unknown_field_names_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'amount'"):
        Budget(ammount=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("unit", ["steps", "tokens", "seconds"])
def test_fraction_and_done_count_the_budgets_unit(unit: str) -> None:
    budget = Budget(amount=50, unit=unit)
    name = {"steps": "step"}.get(unit, unit)
    spent = {"step": 1, "tokens": 1, "seconds": 1.0}
    before, after = (Progress(**{**spent, name: value}, budget=budget) for value in (49, 50))  # type: ignore[arg-type]
    assert before.fraction == pytest.approx(0.98)
    assert not before.done
    assert after.fraction == 1.0
    assert after.done
    assert Progress(**{**spent, name: 500}, budget=budget).fraction == 1.0  # type: ignore[arg-type]


def test_a_budget_prints_as_it_was_asked() -> None:
    assert str(Budget.model_validate("200 steps")) == "200 steps"
    assert str(Budget.model_validate("1000000 steps")) == "1000000 steps"
    assert str(Budget.model_validate("1 step")) == "1 step"
    assert str(Budget.model_validate("2.5 s")) == "2.5 seconds"
