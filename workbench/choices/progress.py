"""Budget and progress of a run, in every unit that a budget or a schedule may count."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from workbench.choices.knob import knob, known_fields

Unit = Literal["steps", "tokens", "seconds"]
# b is a billion, as in "1B tokens", never a byte.
_SIZES = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9}
_UNITS: dict[str, tuple[Unit, float]] = {
    "step": ("steps", 1), "steps": ("steps", 1),
    "token": ("tokens", 1), "tokens": ("tokens", 1),
    "s": ("seconds", 1), "sec": ("seconds", 1), "second": ("seconds", 1), "seconds": ("seconds", 1),
    "min": ("seconds", 60), "minute": ("seconds", 60), "minutes": ("seconds", 60),
    "h": ("seconds", 3600), "hour": ("seconds", 3600), "hours": ("seconds", 3600),
}  # fmt: skip
# A closed list of units keeps "2 min" (minutes) and "2m tokens" (millions) apart.
_BUDGET_TEXT = re.compile(rf"(-?\d[\d_,]*(?:\.\d+)?(?:e\+?\d+)?)\s*([kmb]?)\s*({'|'.join(_UNITS)})")


_MOST_AMOUNT = 1e15
"""Largest amount of any unit: more was mistyped, and no run would end."""


class AmountError(ValueError):
    """The text of a budget with a number and a unit, but of an amount that no run spends."""


class Budget(BaseModel):
    """The amount that a run may spend; schedules end exactly when it is spent.

    Reads from text: ``"200 steps"``, ``"1.5M tokens"``, ``"90 s"``, ``"2 hours"``. Seconds are seconds of
    training: start-up, compilation, evaluation and checkpoints are not charged to it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    amount: float = knob(200.0, "how much", gt=0, scale="log")
    unit: Unit = knob("steps", "what is counted")
    evaluations: int = knob(8, "held-out evaluations spread evenly over the run, the final one included", ge=1, le=1000)
    evaluation_tokens: int = knob(
        131_072,
        "held-out tokens of the final evaluation; those before it take an eighth, at least 16,384",
        unit="tokens",
        ge=1024,
        scale="log",
    )
    checkpoint_seconds: float = knob(120.0, "at most this long between checkpoints", unit="seconds", gt=0, scale="log")

    rollbacks: int = knob(
        0, "times that a loss which is not finite takes the run back to its last checkpoint, at half the rate", ge=0,
        le=100,
    )  # fmt: skip

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if not isinstance(value, (str, Mapping, Budget)):
            raise ValueError(f"{value!r} has no unit; write '200 steps', '1.5M tokens', '90 s' or '2 hours'")
        return parse_budget(value) if isinstance(value, str) else known_fields(cls, value)

    def __str__(self) -> str:
        # Whole numbers whole: a million steps are no 1e+06.
        unit = self.unit.removesuffix("s") if self.amount == 1 else self.unit
        return f"{self.amount:{'.0f' if self.amount.is_integer() else 'g'}} {unit}"


def parse_budget(text: str) -> dict[str, Any]:
    """Return ``"200 steps"`` -> ``{"amount": 200.0, "unit": "steps"}``; minutes and hours become seconds.

    Raises:
        ValueError: the text is not a number followed by a unit.
        AmountError: the number is beyond what any run spends, or a part of a step or token.
    """
    if "epoch" in text.lower():
        raise ValueError(
            f"'{text:.60}': budgets count steps, tokens or seconds; an epoch has as many tokens as the training text, "
            "which data.train.tokens in a run's environment.json says"
        )
    match = _BUDGET_TEXT.fullmatch(text.strip().lower())
    # Of seconds no millions are meant: who writes "500 ms" thinks of half of one.
    if match is None or (match[2] and _UNITS[match[3]][0] == "seconds"):
        raise ValueError(f"'{text}' is not a number and a unit; write '200 steps', '1.5M tokens', '90 s' or '2 hours'")
    unit, factor = _UNITS[match[3]]
    # People write 1_000 and 1,000 alike.
    number = float(match[1].replace("_", "").replace(",", ""))
    amount = number * _SIZES[match[2]] * factor
    if unit != "seconds":
        # 1.001k steps are 1001 of them, which the product only nearly is.
        amount = float(f"{amount:.15g}")
    if amount > _MOST_AMOUNT:
        raise AmountError(f"'{text:.60}' is more than any run spends; write at most {_MOST_AMOUNT:.0e} {unit}")
    if unit != "seconds" and amount > 0 and not amount.is_integer():
        near = " or ".join(str(each) for each in (math.floor(amount), math.ceil(amount)) if each)
        raise AmountError(f"'{text:.60}' is no whole number of {unit}; nearest: {near}")
    return {"amount": amount, "unit": unit}


@dataclass(frozen=True)
class Progress:
    """The place of a run *before* the step it is about to take.

    Attributes:
        step: optimizer steps done.
        tokens: real tokens seen.
        seconds: seconds of training (as in :class:`Budget`).
        budget: what the run may spend.
    """

    step: int
    tokens: int
    seconds: float
    budget: Budget

    def amount(self, unit: Unit) -> float:
        """Return progress in ``unit`` (steps, tokens or seconds)."""
        return {"steps": self.step, "tokens": self.tokens, "seconds": self.seconds}[unit]

    @property
    def fraction(self) -> float:
        """Share of the budget's steps, tokens or seconds that is spent: 0 at the start, 1 at the end."""
        # The step that spends the budget may overshoot it, and a schedule must never see more than 1.
        return min(1.0, self.amount(self.budget.unit) / self.budget.amount)

    @property
    def done(self) -> bool:
        """True once the budget's steps, tokens or seconds are spent."""
        return self.amount(self.budget.unit) >= self.budget.amount

    @property
    def ends_next(self) -> bool:
        """Return whether the step about to be taken is known to be the last; only a budget in steps tells before."""
        return self.budget.unit == "steps" and self.step + 1 >= self.budget.amount


LOOK_AHEAD = 32
"""Points of the budget at which the batches of a run are looked up before it begins."""


def progress_at(budget: Budget, fraction: float) -> Progress:
    """Return a run's progress when a share of its budget, 0 to 1, is spent; units it does not count stay at 0."""
    amount = fraction * budget.amount
    spent = {unit: amount if unit == budget.unit else 0.0 for unit in ("steps", "tokens", "seconds")}
    return Progress(step=int(spent["steps"]), tokens=int(spent["tokens"]), seconds=spent["seconds"], budget=budget)
