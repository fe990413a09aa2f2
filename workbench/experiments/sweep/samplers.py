"""Samplers of a sweep: all of a grid, settings drawn at random, or proposals of one of Optuna's samplers.

Every point follows from the sweep's seed, its own number and what was known when it was drawn: a sweep that goes on
after its driver was killed tries the same points.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from workbench.base.errors import RecipeError, WorkbenchError, check_known
from workbench.experiments.sweep.space import MOST_POINTS, Knob, Space, Values, combinations, size

STEPWISE = "stepwise"
"""Axis after axis (:mod:`workbench.experiments.sweep.stepwise`)."""
_OPTUNAS = ("tpe", "gp")
FIXED, ADAPTIVE = ("grid", "random"), (*_OPTUNAS, STEPWISE)
"""Samplers that need no result, and those that learn from the results there are."""
_TRIES = 200
"""Draws in search of a point that is not there yet."""
_INSISTING = 5
"""Tries after which a sampler that proposes what is there already is helped by chance."""
_STARTUP = 10
"""The most points that an adaptive sampler draws at random, before it learns from them."""


class Trial(NamedTuple):
    """An earlier point for a sampler: drawn values, and score (None while it trains)."""

    drawn: Values
    state: Literal["done", "going", "failed"]
    score: float | None


def check_sampler(sampler: str, space: Space, runs: int | None) -> int:
    """Return the number of points of a sweep.

    Raises:
        RecipeError: no such sampler, a grid over a range, or a number of runs that does not fit.
        WorkbenchError: Optuna is not installed.
    """
    check_known("sampler", sampler, FIXED + ADAPTIVE, RecipeError)
    whole = size(space)
    if sampler == "grid":
        ranges = [path for path, knob in space.items() if not knob.values]
        if whole is None:
            others = ", ".join(each for each in FIXED + ADAPTIVE if each != "grid")
            raise RecipeError(f"{ranges[0]}: a grid needs a list of values; a range needs another sampler: {others}")
        if runs is not None and runs != whole:
            raise RecipeError(f"runs: this grid has {whole} points, got {runs}; the sampler 'random' takes some")
        runs = whole
    if runs is None:
        raise RecipeError(f"runs: say how many points sampler '{sampler}' may try: runs=20, or --points 20")
    if not 1 <= runs <= MOST_POINTS:
        raise RecipeError(f"runs: a sweep has 1 to {MOST_POINTS:,} points, got {runs:,}")
    if sampler in _OPTUNAS:
        _optuna()
    return runs


def grid(space: Space) -> list[Values]:
    """List all combinations, the last knob fastest."""
    return list(combinations(space))


def distinct(draws: Callable[[int], Values], key: Callable[[Values], str], known: set[str]) -> Values | None:
    """Return the first of a series of draws that is not known yet; None where none is found.

    Args:
        draws: of the number of the try. key: of the settings that a draw leads to; empty for one that is none.
    """
    for attempt in range(_TRIES):
        drawn = draws(attempt)
        if key(drawn) not in known:
            return drawn
    return None


def draw(space: Space, seed: int, index: int, attempt: int) -> Values:
    """Draw a point at random: a pure function of its arguments."""
    rng = np.random.default_rng([seed, index, attempt])
    return {path: _drawn(knob, rng) for path, knob in space.items()}


def _drawn(knob: Knob, rng: np.random.Generator) -> Any:
    if knob.values:
        return knob.values[int(rng.integers(len(knob.values)))]
    if knob.log:
        return knob.number(float(np.exp(rng.uniform(np.log(knob.low), np.log(knob.high)))))
    return knob.number(float(rng.uniform(knob.low, knob.high)))


def propose(space: Space, sampler: str, seed: int, runs: int, trials: Sequence[Trial], attempt: int) -> Values:
    """Return the next point of one of Optuna's samplers, which is told all earlier ones anew.

    Args:
        runs: points of the whole sweep. trials: earlier points, in order. attempt: number of the try.

    Raises:
        WorkbenchError: Optuna is not installed.
    """
    optuna = _optuna()
    startup = min(_STARTUP, max(4, runs // 3))
    if attempt >= _INSISTING:
        return draw(space, seed, len(trials), attempt)  # it insists on what is there
    state = int(np.random.SeedSequence([seed, len(trials), attempt]).generate_state(1)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        samplers = optuna.samplers
        chosen = (
            samplers.TPESampler(seed=state, n_startup_trials=startup, constant_liar=True)
            if sampler == "tpe"
            else samplers.GPSampler(seed=state, n_startup_trials=startup)
        )
        study = optuna.create_study(sampler=chosen)
        shapes = {path: _shape(optuna, knob) for path, knob in space.items()}
        for trial in trials:
            study.add_trial(_told(optuna, space, shapes, trial))
        asked = study.ask(shapes).params
    # As texts of values, since Optuna's choices are plain ones, and a knob's may be a whole schedule.
    return {path: knob.values[asked[path]] if knob.values else knob.number(asked[path]) for path, knob in space.items()}


def _shape(optuna: Any, knob: Knob) -> Any:
    if knob.values:
        return optuna.distributions.CategoricalDistribution(tuple(range(len(knob.values))))
    if knob.whole:
        return optuna.distributions.IntDistribution(int(knob.low), int(knob.high), log=knob.log)
    return optuna.distributions.FloatDistribution(knob.low, knob.high, log=knob.log)


def _told(optuna: Any, space: Space, shapes: dict[str, Any], trial: Trial) -> Any:
    keys = {path: [json.dumps(value, sort_keys=True) for value in knob.values] for path, knob in space.items()}
    params = {
        path: keys[path].index(json.dumps(value, sort_keys=True)) if keys[path] else value
        for path, value in trial.drawn.items()
    }
    states = optuna.trial.TrialState
    state = {"done": states.COMPLETE, "going": states.RUNNING, "failed": states.FAIL}[trial.state]
    return optuna.trial.create_trial(state=state, params=params, distributions=shapes, value=trial.score)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise WorkbenchError(
            f"samplers {' and '.join(_OPTUNAS)} are Optuna's, which is not installed: `pip install "
            "'workbench[sweep]'`, or take the sampler 'random'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
