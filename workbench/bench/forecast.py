"""Measure the error of forecasts: varied recipes, each forecast, then trained for a few steps in a process of its own.

One thread on a CPU is timed by its own processor's clock. What is known stands in one file, which is filled recipe by
recipe: a second start goes on where the first was stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from workbench.base.errors import WorkbenchError
from workbench.bench.contender import TRAINER, Contender
from workbench.bench.forecast_cases import STEPS, cases, compare_run, whole_runs
from workbench.bench.result import ResultsFile
from workbench.choices.execution.hardware import Mode
from workbench.forecasting.calibration import VERSION, measured
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
    known, name = results.data["rates"], " ".join(map(str, (*mode._replace(compiled=False), VERSION)))
    if name not in known:
        results.put(rates=known | {name: measured(mode, fresh=True).model_dump(mode="json")})
    return Rates.model_validate(results.data["rates"][name])


def show(console: Console, found: Mapping[str, Mapping[str, Any]]) -> None:
    """One line per recipe: seconds per step, MiB and seconds of compiling, forecast and measured."""
    heads = ("s/step", "forecast", "error", "MiB", "forecast", "error", "compile s", "forecast")
    table = Table("recipe", *heads)
    for name, each in found.items():
        if "error" in each:
            table.add_row(name, each["error"].splitlines()[-1][:60])
            continue
        real, ahead = each["measured"], each["forecast"]
        table.add_row(
            name, f"{real['seconds']:.3f}", f"{ahead['seconds']:.3f}",
            f"{each['time_error']:+.0%}{'' if each['inside'] else ' outside'}",
            f"{real['memory_bytes'] / 2**20:.0f}", f"{ahead['memory_bytes'] / 2**20:.0f}",
            f"{each['memory_error']:+.0%}", f"{real['compile_seconds']:.0f}", f"{ahead['compile_seconds']:.0f}",
        )  # fmt: skip
    console.print(table)


def main(argv: list[str]) -> int:
    """``workbench bench forecast``."""
    parser = argparse.ArgumentParser(prog="workbench bench forecast", description=__doc__)
    parser.add_argument("--only", nargs="*", metavar="NAME", help="these recipes only")
    parser.add_argument("--eager", action="store_true", help="leave out what has to be compiled")
    parser.add_argument("--again", action="store_true", help="measure again what the file holds, calibration included")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"steps of each (default {STEPS})")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of each (default 1)")
    parser.add_argument("--runs", type=int, metavar="N", help="memory alone: of N whole runs of each of a few recipes")
    parser.add_argument("--out", type=Path, help="the file to fill (default docs/results/forecast[-runs].json)")
    options = parser.parse_args(argv)
    if options.runs is not None:
        return _compare_runs(options)
    options.out = options.out or Path("docs/results/forecast.json")
    console, chosen = Console(), cases(options.threads, options.steps)
    names = _named(options.only, chosen)
    results = ResultsFile(options.out, "forecast")
    with contextlib.ExitStack() as stack:
        stack.enter_context(results.own())
        if options.again or "rates" not in results.data:
            results.put(rates={}, runs={})
        # An empty cache: how long compiling takes is measured, too.
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = stack.enter_context(tempfile.TemporaryDirectory())
        for name in names:
            recipe = chosen[name]
            if (recipe.engine().compiled and options.eager) or results.known(name, recipe) is not None:
                continue
            console.print(name, style="dim")
            rates = _rates(results, recipe.engine().mode)
            # One that fails, for want of a package or of memory, says so in the table; the others go on.
            try:
                case = compare(recipe, options.steps, rates)
            except WorkbenchError as error:
                case = {"error": str(error)}
            results.add(name, recipe, {"mode": MODES[recipe.engine().compiled], **case})
            results.put(summary=summary(results.data["runs"]))
    show(console, results.data["runs"])
    console.print_json(data=results.data.get("summary", {}))
    console.print(f"saved {options.out}")
    return 0


def _named(asked: list[str] | None, chosen: Mapping[str, Recipe]) -> list[str]:
    """The names that were asked for, else all."""
    if unknown_names := sorted(set(asked or ()) - chosen.keys()):
        raise WorkbenchError(f"no recipe is called {unknown_names[0]!r}; the set has {', '.join(map(repr, chosen))}")
    return asked or list(chosen)


def _compare_runs(options: argparse.Namespace) -> int:
    """``--runs``: whole runs beside their forecast of memory."""
    chosen = whole_runs(options.threads)
    results = ResultsFile(options.out or Path("docs/results/forecast-runs.json"), "forecast")
    table = Table("recipe", "forecast, MiB", "measured", "error")
    with results.own():
        for name in _named(options.only, chosen):
            if options.again or results.known(name, chosen[name]) is None:
                results.add(name, chosen[name], compare_run(chosen[name], max(1, options.runs)))
            case = results.data["runs"][name]
            measured_mib = ", ".join(f"{taken / 2**20:.0f}" for taken in case["measured_bytes"])
            errors = ", ".join(f"{error:+.0%}" for error in case["memory_error"])
            table.add_row(name, f"{case['forecast_bytes'] / 2**20:.0f}", measured_mib, errors)
    Console().print(table)
    print(f"saved {results.path}")
    return 0
