"""One budget for recipes of different speed: how many steps each of them gets for it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from workbench.base.errors import RecipeError, check_known

if TYPE_CHECKING:
    from workbench.choices.data.tokens import PreparedData
    from workbench.forecasting.forecast import Forecast
    from workbench.recipes.recipe import Recipe

Clock = Literal["reference", "measured"]
"""Kinds of seconds: those that the forecast takes for an arm's steps here, or those of each run itself."""
_FLOPS = re.compile(r"(-?\d[\d_,]*(?:\.\d+)?(?:e\+?\d+)?)\s*([kmgtp]?)flops?", re.IGNORECASE)
_LEGAL = "'200 steps', '1.5M tokens', '90 s', '2 hours' or '2e15 flops'"
# How near to a budget the steps for it come, and how often they are corrected for that.
_NEAR, _CORRECTIONS = 0.005, 6
FEWEST_STEPS = 20
"""A schedule of fewer has hardly a shape."""
_SIZES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}


class Amount(NamedTuple):
    """The budget of every arm; ``unit`` is steps, tokens, seconds or flops."""

    amount: float
    unit: str

    @property
    def words(self) -> str:
        """The text that :func:`parse` reads back."""
        return f"{self.amount:.15g} {self.unit}"


@dataclass(frozen=True)
class Share:
    """The budget of one recipe: the conversion that an experiment stores and shows.

    Attributes:
        amount, unit: of the budget of its runs.
        steps, tokens, flops, seconds: of one run; all but what the budget counts are forecast.
        seconds_per_step: forecast, mean over the run.
        threads: that it trains with; 0 on a GPU.
        compile_seconds: forecast, before the first run's clock starts.
        parameters, memory_bytes: forecast, see :class:`~workbench.forecasting.forecast.Forecast`; 0 where they were
        not asked.
    """

    amount: float
    unit: str
    steps: int
    tokens: int
    flops: float
    seconds: float
    seconds_per_step: float
    threads: int
    compile_seconds: float
    parameters: int = 0
    memory_bytes: int = 0

    @property
    def words(self) -> str:
        """The budget of a run as text, as :func:`parse` reads it."""
        return Amount(self.amount, self.unit).words

    def seconds_at(self, step: float, tokens: float) -> float:
        """Return the reference seconds at a place of a run: by tokens where its budget counts them, else by steps."""
        return self.seconds * tokens / self.tokens if self.unit == "tokens" else self.seconds_per_step * step


def parse(text: object) -> Amount:
    """Return ``"60 s"``, ``"600 steps"``, ``"1e6 tokens"`` or ``"2e15 flops"``.

    Raises:
        RecipeError: it is none of them.
    """
    from workbench.choices.progress import AmountError, parse_budget

    if not isinstance(text, str):
        raise RecipeError(f"budget: {text!r:.60} has no unit; write {_LEGAL}")
    if match := _FLOPS.fullmatch(text.strip()):
        amount = Amount(float(match[1].replace("_", "").replace(",", "")) * _SIZES[match[2].lower()], "flops")
    else:
        try:
            found = parse_budget(text)
        except AmountError as error:
            raise RecipeError(f"budget {error}") from None
        except ValueError:
            raise RecipeError(f"budget '{text:.60}' is not a number and a unit; write {_LEGAL}") from None
        amount = Amount(found["amount"], found["unit"])
    if not 0 < amount.amount < math.inf:
        raise RecipeError(f"budget '{text:.60}': a budget must be more than 0, and finite")
    return amount


def check_clock(clock: str) -> None:
    """Refuse a clock that is none.

    Raises:
        RecipeError: the message lists them.
    """
    check_known("clock", clock, get_args(Clock), RecipeError)


def shared(recipe: Recipe, budget: Amount, clock: str, forecast: Callable[[Recipe], Forecast]) -> tuple[Recipe, Share]:
    """Return the recipe under its share of a budget, and that share.

    Seconds of reference time, and FLOPs, become steps, so that a busy machine changes no result; they become tokens
    where the batch grows by what it measures, as nobody knows before how much a step will then be.

    Args:
        forecast: what a recipe takes here.
    """
    if budget.unit == "flops" or (budget.unit == "seconds" and clock == "reference"):
        recipe = recipe.with_(budget={"amount": _steps_for(recipe, budget, forecast), "unit": "steps"})
        if not recipe.data.batch_rule.follows_schedule:
            recipe = recipe.with_(budget={"amount": forecast(recipe).tokens, "unit": "tokens"})
    else:
        recipe = recipe.with_(budget={"amount": budget.amount, "unit": budget.unit})
    return recipe, share_of(recipe, forecast)


def share_of(recipe: Recipe, forecast: Callable[[Recipe], Forecast]) -> Share:
    """Return the share that is a recipe's own budget."""
    found = forecast(recipe)
    return Share(
        recipe.budget.amount, recipe.budget.unit, found.steps, found.tokens, found.flops, found.seconds,
        found.seconds / found.steps, threads_of(recipe), found.compile_seconds,
        found.parameters, found.memory_bytes,
    )  # fmt: skip


def threads_of(recipe: Recipe) -> int:
    """Return the threads that a recipe trains with; 0 on a GPU."""
    mode = recipe.engine().mode
    return 0 if mode.device == "cuda" else mode.threads


def check_size(whose: str, recipe: Recipe, share: Share, prepared: PreparedData, text: str) -> None:
    """Refuse a budget that can show nothing.

    Args:
        whose: the recipe, in words. text: the budget as asked.

    Raises:
        RecipeError: too few steps, or fewer labelled tokens than the vocabulary has entries.
    """
    labels, entries = labels_of(recipe, share), prepared.vocabulary.size
    if share.steps < FEWEST_STEPS:
        raise RecipeError(
            f"budget '{text}' is too small: {whose} gets {share.steps} {'step' if share.steps == 1 else 'steps'} for "
            f"it, and schedules need at least {FEWEST_STEPS}"
        )
    if labels < entries:
        raise RecipeError(
            f"budget '{text}' is too small: {whose} sees {labels:,.0f} labelled tokens for it, fewer than its "
            f"vocabulary has entries ({entries:,}), so it cannot even learn word frequencies"
        )


def labels_of(recipe: Recipe, share: Share) -> float:
    """Return the number of labelled tokens of a run."""
    from workbench.choices.progress import progress_at

    points = [recipe.objective.labelled_fraction(progress_at(recipe.budget, at)) for at in (0.0, 0.5, 1.0)]
    return share.tokens * (points[0] + 2 * points[1] + points[2]) / 4


def _steps_for(recipe: Recipe, budget: Amount, forecast: Callable[[Recipe], Forecast]) -> int:
    def spent(steps: int) -> float:
        found = forecast(recipe.with_(budget={"amount": steps, "unit": "steps"}))
        return found.seconds if budget.unit == "seconds" else found.flops

    # What a step takes depends on their number where a schedule counts steps, or where layers are dropped by chance.
    steps, off = 1000, dict[int, float]()
    while steps not in off and len(off) < _CORRECTIONS:
        takes = spent(steps)
        off[steps] = abs(takes / budget.amount - 1)
        if off[steps] <= _NEAR:
            break
        steps = max(1, round(steps * budget.amount / takes))
    return min(off, key=off.__getitem__)
