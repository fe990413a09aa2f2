"""Before a run: parameters, FLOPs, memory, speed, time and cost, from the recipe and a calibration of this machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from workbench.base.text import count, duration_words, passes_words

if TYPE_CHECKING:
    from workbench.choices.choice import Problem
    from workbench.choices.data.data import Data
    from workbench.choices.data.tokens import Vocabulary
    from workbench.forecasting.rates import Rates
    from workbench.recipes.recipe import Recipe

BAND = {False: 0.25, True: 0.4}
"""Half-width of the band around seconds, as a share: eager, compiled."""
FAR = 100
"""Times an optimizer's default rate, from which on a rate is called unusual."""
YEAR_SECONDS = 365 * 86_400
UNKNOWN_PREPARATION_SECONDS = 120.0
"""Seconds of a preparation that was never timed here: between 1 and 3 minutes."""
PREPARATION = "and once, reading the text and learning its vocabulary"


@dataclass(frozen=True)
class Forecast:
    """The expected cost of a run. ``to_dict`` is what ``workbench forecast --json`` prints.

    Attributes:
        parameters: trainable parameters of the finished model, tied ones counted once; exact.
        flops_per_token: useful FLOPs over tokens, mean over the run.
        memory_bytes: peak, beyond what a process with torch loaded takes.
        memory: bytes by part: weights, gradients, optimizer, activations, logits, and what the program's heap adds.
        seconds: of training; start-up, compilation, evaluation and checkpoints come on top, as in budgets.
        seconds_low, seconds_high: the range in which the time will probably lie.
        cost: of these seconds at the price per hour, None without a price.
        schedules: values at points along the budget, by path; ``progress`` is the share of the budget spent.
        layers: ``forward`` and ``backward`` by point, shares of micro-batches in which each layer computes and trains.
        notes: how often the text is read, and what the numbers leave out for this recipe.
        compile_seconds: of one processor, roughly what compiling takes the first time, before the run's clock starts;
            several processors compile in parallel. 0 if nothing is compiled.
        preparation: what happens once before training, if text and vocabulary are not in this machine's cache yet.
        preparation_seconds: about what that takes.
        provisional: why the figures will change when the run begins; empty if they will not.
        unusual: a knob so unusual that the run will most likely learn nothing; empty if there is none.
        refusal: why the run will most likely be refused at its start, with the way out; empty where it will not be.
        machine, calibrated: the device whose rates were used, and the date on which they were measured.
    """

    parameters: int
    flops_per_token: float
    flops: float
    memory_bytes: int
    memory: dict[str, int]
    device_memory_bytes: int
    tokens_per_second: float
    seconds: float
    seconds_low: float
    seconds_high: float
    steps: int
    tokens: int
    cost: float | None
    schedules: dict[str, list[float]] = field(repr=False)
    layers: dict[str, list[list[float]]] = field(repr=False)
    notes: tuple[str, ...] = ()
    compile_seconds: float = 0.0
    machine: str = ""
    calibrated: str = ""
    provisional: str = ""
    preparation: str = ""
    preparation_seconds: float = 0.0
    unusual: str = ""
    refusal: str = ""

    def __repr__(self) -> str:
        shown = ((each.name, getattr(self, each.name)) for each in fields(self) if each.repr)
        # Of what was multiplied and added up, no digit beyond these says anything.
        return f"Forecast({', '.join(f'{name}={_rounded(value)!r}' for name, value in shown)})"

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes by name, JSON-serialisable."""
        return asdict(self)


def _rounded(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def forecast(
    recipe: Recipe,
    *,
    price_per_hour: float | None = None,
    rates: Rates | None = None,
    say: Callable[[str], None] | None = None,
    poll: Callable[[], None] | None = None,
) -> Forecast:
    """Return the expected cost of ``recipe`` on this machine.

    The first call measures the machine in a separate process and remembers the rates (``forecasting/calibration.py``).
    Nothing is trained and no model is allocated.

    Args:
        price_per_hour: of the device, in any currency.
        rates: of another machine; None for this one.
        say, poll: see :func:`~workbench.forecasting.calibration.calibrated`.

    Raises:
        RecipeError: not a recipe, the model cannot be built, or this machine cannot carry the recipe out.
        WorkbenchError: the machine could not be measured.

    Example:
        >>> import workbench as wb
        >>> wb.forecast(wb.presets.fast()).parameters  # doctest: +SKIP
        4196608
    """
    from workbench.choices.execution.memory_fit import room_now
    from workbench.forecasting.calibration import calibrated
    from workbench.forecasting.simulated_run import Simulator

    here = rates is None
    _check(recipe, rates)
    engine = recipe.engine()
    rates = rates or calibrated(engine.mode, say, poll)
    vocabulary = _vocabulary(recipe.data)
    room, filled = room_now(engine.memory, engine.device, rates.memory_bytes, here)
    now = rates.model_copy(update={"memory_bytes": room})
    simulator = Simulator(recipe, vocabulary, _attention(recipe, rates, here), now)
    simulated = simulator.run()
    memory = asdict(simulator.memory(simulated))
    peak = memory.pop("peak")
    # On a CPU the parts are no more than half of a small model's memory, and nobody should have to look for the rest.
    memory["heap"] = max(0, peak - sum(memory.values()))
    band = BAND[engine.mode.compiled]
    counted, far = recipe.budget.unit == "seconds", " ".join(unusual(recipe) or ())
    preparation, preparing = _preparation(recipe.data) if here else ("", 0.0)
    return Forecast(
        parameters=simulated.parameters,
        flops_per_token=simulated.flops / simulated.tokens,
        flops=simulated.flops,
        memory_bytes=peak,
        memory=memory,
        device_memory_bytes=rates.memory_bytes,
        tokens_per_second=simulated.tokens / simulated.seconds,
        seconds=simulated.seconds,
        # A budget in seconds is kept; what varies is how far it leads.
        seconds_low=simulated.seconds * (1 if counted else 1 / (1 + band)),
        seconds_high=simulated.seconds * (1 if counted else 1 + band),
        steps=max(1, math.ceil(simulated.steps - 1e-6)),
        tokens=round(simulated.tokens),
        cost=None if price_per_hour is None else price_per_hour * simulated.seconds / 3600,
        schedules=_schedules(simulated.points),
        layers={way: [getattr(point, way) for point in simulated.points] for way in ("forward", "backward")},
        notes=tuple(filter(None, (far, filled, *_reading(recipe.data, simulated.tokens), *_notes(recipe)))),
        compile_seconds=simulator.compile_seconds(simulated),
        machine=rates.device,
        calibrated=rates.date,
        provisional=engine.provisional,
        preparation=preparation,
        preparation_seconds=preparing,
        unusual=far,
        refusal=simulator.refusal,
    )


def _check(recipe: Recipe, rates: Rates | None) -> None:
    """Refuse what is no recipe, cannot be built, or cannot be carried out on this machine where that is asked."""
    from workbench.base.errors import RecipeError
    from workbench.choices.data.examples import Examples
    from workbench.forecasting.rates import Rates
    from workbench.recipes.recipe import check_recipe

    check_recipe(recipe, "forecast")
    if rates is not None and not isinstance(rates, Rates):
        raise RecipeError(f"rates: {rates!r:.60} is not the rates of a machine; leave them out for this one's")
    recipe.check_whole()
    if isinstance(recipe.data, Examples):
        raise RecipeError("data: labelled examples are not forecast; `workbench finetune` takes one pass per epoch")
    if rates is None:
        recipe.check_here()


def rates_from(known: Mapping[str, Any]) -> Rates:
    """Return rates of a machine, from what their ``model_dump`` gave."""
    from workbench.forecasting.rates import Rates

    return Rates(**known)


def measure_again(recipe: Recipe, say: Callable[[str], None]) -> None:
    """Measure this machine anew for runs of this mode, so that forecasts from now on go by what it is today.

    Args:
        say: called with one line before.

    Raises:
        RecipeError: this machine cannot carry the recipe out.
        WorkbenchError: the machine could not be measured.
    """
    from workbench.forecasting.calibration import measured_again

    recipe.check_here()
    measured_again(recipe.engine().mode, say)


def unusual(recipe: Recipe) -> Problem | None:
    """Return a learning rate or a time at which nothing is learned; None where both may be well chosen.
    Takes no time.
    """
    from workbench.choices.choice import Problem

    optimizer, budget = recipe.optimizer, recipe.budget
    usual = type(optimizer).model_fields["lr"].default
    if optimizer.lr > FAR * usual:
        times = f"{optimizer.lr / usual:,.0f}"
        why = f"{optimizer.lr:g} is {times} times what {optimizer.kind} begins with ({usual:g})"
        return Problem("optimizer.lr", why)
    if budget.unit == "seconds" and budget.amount > YEAR_SECONDS:
        years = count(budget.amount / YEAR_SECONDS)
        why = f"{budget.amount:g} seconds are {years} years, and schedules take their warm-up and decay as shares of it"
        return Problem("budget.amount", why)
    return None


def _preparation(data: Data) -> tuple[str, float]:
    """Return the work before the first training on ``data`` in words, and about its seconds; ("", 0) for none."""
    from workbench.choices.data.prepare import is_prepared, usual_seconds

    if is_prepared(data):
        return "", 0.0
    seconds = usual_seconds(data)
    if seconds is None:
        return f"{PREPARATION}: 1 to 3 minutes", UNKNOWN_PREPARATION_SECONDS
    return f"{PREPARATION}: it took {duration_words(seconds)} the last time", seconds


def _schedules(points: list[Any]) -> dict[str, list[float]]:
    """Return values by path at every point, ``progress`` first; a knob that one phase alone has is left out."""
    found = {"progress": [point.progress.fraction for point in points]}
    always = [path for path in points[0].knobs if all(path in point.knobs for point in points)]
    return found | {path: [point.knobs[path] for point in points] for path in always}


def _reading(data: Data, tokens: float) -> list[str]:
    """Return how often a run of so many tokens reads its text, where its size is known, and what it leaves unread."""
    from workbench.choices.data.prepare import training_tokens

    whole = training_tokens(data)
    unread = data.order.unread(tokens, whole)
    passes = f"training makes about {passes_words(tokens / whole, whole)}" if whole else ""
    return [passes, unread and f"data.order: {unread}"]


def _notes(recipe: Recipe) -> list[str]:
    notes = ["seconds of training only: start-up, compilation, evaluation and checkpoints come on top"]
    if recipe.data.batch_rule.kind != "as_scheduled":
        notes.append(f"data.batch_rule '{recipe.data.batch_rule.kind}' changes the batch by what it measures; not seen")
    if recipe.objective.reference is not None:
        notes.append("the forward pass of the reference model comes on top: no other run is read for a forecast")
    return notes + recipe.engine().assumptions()


def _vocabulary(data: Data) -> Vocabulary:
    """Return the vocabulary that preparation will give: known from the recipe where a size is asked for,
    else prepared.
    """
    from workbench.choices.data.prepare import prepare
    from workbench.choices.data.tokens import Vocabulary

    requested = data.tokenizer.asked_size()
    if not requested:
        return prepare(data, say=lambda line: None).vocabulary
    size = -(-requested // 64) * 64
    return Vocabulary(size, requested, 1, 2, 3, 0, 4)


def _attention(recipe: Recipe, rates: Rates, here: bool) -> str:
    """Return the engine's attention; of several, the fastest for such a recipe here,
    else at the nearest calibrated length.
    """
    engine = recipe.engine()
    attentions = engine.priced_attentions
    if len(attentions) == 1:
        return attentions[0]
    if here and (remembered := engine.remembered_attention):
        return remembered
    nearest = min(rates.attention_choice, key=lambda length: abs(math.log(int(length) / recipe.data.longest)))
    return rates.attention_choice[nearest]
