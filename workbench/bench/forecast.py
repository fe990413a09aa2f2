"""Measure the error of forecasts: varied recipes, each forecast, then trained for a few steps in a process of its own.

One thread on a CPU is timed by its own processor's clock. What is known stands in one file, which is filled recipe by
recipe: a second start goes on where the first was stopped.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Mapping
from typing import Any

from workbench.base.errors import WorkbenchError
from workbench.bench.contender import TRAINER, Contender, note
from workbench.bench.forecast_cases import cases, compare_run, whole_runs
from workbench.bench.result import ResultsFile
from workbench.bench.table import Options
from workbench.choices.execution.hardware import Mode
from workbench.forecasting import calibration
from workbench.forecasting.forecast import forecast
from workbench.forecasting.rates import Rates
from workbench.recipes.recipe import Recipe

MODES = ("eager", "compiled")
ERRORS = ("time_error", "memory_error")


def compare(recipe: Recipe, steps: int, rates: Rates) -> dict[str, Any]:
    """Forecast a recipe of ``steps`` steps, train it, and put the two side by side.

    Returns:
        ``forecast`` and ``measured``, each with ``seconds`` per step, ``memory_bytes`` and ``compile_seconds``;
        ``time_error`` and ``memory_error``, forecast over measured minus 1; ``inside``: whether the time lies in the
        band; ``parameters_agree``; ``load``.

    Raises:
        WorkbenchError: the run failed; its last words are quoted.
    """
    ahead = forecast(recipe, rates=rates)
    setting = {"name": recipe.name, "recipe": recipe.to_dict(), "memory": True}
    try:
        with Contender(TRAINER, setting) as contender:
            answer = contender.ask({"steps": steps}) | contender.ready
    except RuntimeError as error:
        raise WorkbenchError("\n".join(str(error).splitlines()[-5:])) from None
    # The first step makes the optimizer's state and the heap grow: a run has thousands of others.
    seconds, wall = (statistics.mean(answer[clock][1:] or answer[clock]) for clock in ("seconds", "wall_seconds"))
    low, high = (bound / ahead.steps for bound in (ahead.seconds_low, ahead.seconds_high))
    return {
        "forecast": {
            "seconds": ahead.seconds / ahead.steps, "seconds_low": low, "seconds_high": high,
            "compile_seconds": ahead.compile_seconds, "memory_bytes": ahead.memory_bytes, **ahead.memory,
        },
        "measured": {
            "seconds": seconds, "wall_seconds": wall,
            **{name: answer[name] for name in ("compile_seconds", "compile_wall_seconds", "memory_bytes")},
        },
        "load": round(os.getloadavg()[0], 1),
        "time_error": ahead.seconds / ahead.steps / seconds - 1,
        "memory_error": ahead.memory_bytes / answer["memory_bytes"] - 1,
        "inside": low <= seconds <= high,
        "flops_error": ahead.flops / answer["flops"] - 1,
        "parameters_agree": ahead.parameters == answer["parameters"],
    }  # fmt: skip


def summary(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """By mode: recipes, median and worst absolute error of time and memory as shares, and how many lie in the band."""
    ran = {name: each for name, each in found.items() if "error" not in each}
    answer: dict[str, Any] = {"failed": sorted(found.keys() - ran.keys())}
    for mode in MODES:
        here = {name: each for name, each in ran.items() if each["mode"] == mode}
        if not here:
            continue
        answer[mode] = {"recipes": len(here), "inside_the_band": sum(each["inside"] for each in here.values())}
        for what in ERRORS:
            size = {name: abs(each[what]) for name, each in here.items()}
            worst = max(size, key=lambda name: size[name])
            answer[mode][what] = {
                "median": statistics.median(size.values()), "worst": here[worst][what], "recipe": worst,
                "mean_with_sign": statistics.mean(each[what] for each in here.values()),
            }  # fmt: skip
    return answer


def _rates(results: ResultsFile, mode: Mode) -> Rates:
    """Return the rates of this machine, measured unless the file has them; compiled recipes take the eager ones."""
    known, name = results.data["rates"], " ".join(map(str, (*mode._replace(compiled=False), calibration.VERSION)))
    if name not in known:
        results.put(rates=known | {name: calibration.measured(mode, fresh=True).model_dump(mode="json")})
    return Rates.model_validate(results.data["rates"][name])


def measured(options: Options) -> dict[str, Any] | None:
    """Compare the recipes that the file lacks, one by one."""
    whole, results = options.runs is not None, options.results
    chosen = whole_runs(options.threads) if whole else cases(options.threads, options.steps)
    names = _named(options.only, chosen)
    with results.own(), tempfile.TemporaryDirectory() as empty:
        if not whole and (options.again or "rates" not in results.data):
            results.put(rates={}, runs={})
        # An empty cache: how long compiling takes is measured, too.
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = empty
        for name in names:
            recipe = chosen[name]
            if (recipe.engine().compiled and options.eager) or (
                results.known(name, recipe) is not None and not (whole and options.again)
            ):
                continue
            note(name)
            if whole:
                results.add(name, recipe, compare_run(recipe, max(1, options.runs)))
                continue
            rates = _rates(results, recipe.engine().mode)
            # One that fails, for want of a package or of memory, says so in the table; the others go on.
            try:
                case = compare(recipe, options.steps, rates)
            except WorkbenchError as error:
                case = {"error": str(error)}
            results.add(name, recipe, {"mode": MODES[recipe.engine().compiled], **case})
            results.put(summary=summary(results.data["runs"]))
    return {}


def _named(asked: list[str] | None, chosen: Mapping[str, Recipe]) -> list[str]:
    """Return the names that were asked for, else all."""
    if unknown_names := sorted(set(asked or ()) - chosen.keys()):
        raise WorkbenchError(f"no recipe is called {unknown_names[0]!r}; the set has {', '.join(map(repr, chosen))}")
    return asked or list(chosen)
