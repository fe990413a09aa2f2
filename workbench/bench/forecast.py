"""How far forecasts are off: varied recipes, each forecast, then trained for a few steps in a process of its own.

One thread on a CPU is timed by its own processor's clock. A model of the calibration trains in turns with each recipe,
and tells how much slower the machine is than when it was calibrated. What is known stands in one file, which is filled
recipe by recipe: a second start goes on where the first was stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from workbench.bench.contender import Contender
from workbench.bench.forecast_cases import STEPS, cases
from workbench.bench.result import ResultsFile
from workbench.choices.execution.engine import Mode
from workbench.errors import WorkbenchError
from workbench.forecast import forecast
from workbench.forecasting.calibration import measured
from workbench.forecasting.rates import Rates
from workbench.recipe import Recipe

MODES = ("eager", "compiled")
TRAINER = "workbench.bench.timed_trainer"
ROUND, REFERENCE_STEPS = 3, 6
"""Steps of a recipe, and of the calibration's model, before the other has its turn."""
ERRORS = ("time_error", "same_speed_error", "memory_error")


def compare(recipe: Recipe, steps: int, rates: Rates, reference: Contender) -> dict[str, Any]:
    """Forecast a recipe, train its steps, and put the two side by side.

    Args:
        recipe: of ``steps`` steps.
        steps: of its budget.
        rates: of this machine.
        reference: trains the model of the calibration; the two alternate.

    Returns:
        ``forecast`` and ``measured``, each with ``seconds`` per step, ``memory_bytes`` and ``compile_seconds``;
        ``time_error`` and ``memory_error``, forecast over measured minus 1; ``same_speed_error``: the former as if the
        machine were as fast as when it was calibrated, which it was ``slower`` times over; ``inside``: whether the
        time, at that speed, lies in the band; ``parameters_agree``; ``load``.

    Raises:
        WorkbenchError: the run failed; its last words are quoted.
    """
    ahead = forecast(recipe, rates=rates)
    answers, beside = _alternated(recipe, steps, reference)
    # The first step makes the optimizer's state and the heap grow: a run has thousands of others.
    answers[0]["seconds"], answers[0]["wall_seconds"] = answers[0]["seconds"][1:], answers[0]["wall_seconds"][1:]
    seconds, slower = compared([answer["seconds"] for answer in answers], beside, rates.reference)
    walls = [wall for answer in answers for wall in answer["wall_seconds"]]
    low, high = (bound / ahead.steps for bound in (ahead.seconds_low, ahead.seconds_high))
    last = answers[-1]
    return {
        "forecast": {
            "seconds": ahead.seconds / ahead.steps, "seconds_low": low, "seconds_high": high,
            "compile_seconds": ahead.compile_seconds, "memory_bytes": ahead.memory_bytes, **ahead.memory,
        },
        "measured": {
            "seconds": seconds, "wall_seconds": statistics.mean(walls),
            "compile_seconds": last["compile_seconds"], "compile_wall_seconds": last["compile_wall_seconds"],
            "memory_bytes": last["memory_bytes"],
        },
        "slower": slower,
        "load": round(os.getloadavg()[0], 1),
        "time_error": ahead.seconds / ahead.steps / seconds - 1,
        "same_speed_error": ahead.seconds / ahead.steps * slower / seconds - 1,
        "memory_error": ahead.memory_bytes / last["memory_bytes"] - 1,
        "inside": low <= seconds / slower <= high,
        "flops_error": ahead.flops / sum(answer["flops"] for answer in answers) - 1,
        "parameters_agree": ahead.parameters == last["parameters"],
    }  # fmt: skip


def compared(rounds: Sequence[Sequence[float]], beside: Sequence[float], reference: float) -> tuple[float, float]:
    """(mean seconds of a step, how many times slower the machine was meanwhile than it could be).

    Within rounds first: a slow minute hits a recipe and the steps of the reference before and after it alike.

    Args:
        rounds: seconds of the recipe's steps.
        beside: of a step of the reference before every round, and after the last.
        reference: of such a step when the machine was calibrated.

    Example:
        >>> compared([[2.0, 2.0], [4.0, 4.0]], [1.0, 1.0, 3.0], 1.0)
        (3.0, 1.5)
    """
    steps = [seconds for each in rounds for seconds in each]
    mean = statistics.mean(steps)
    slower = [(before + after) / 2 / reference for before, after in itertools.pairwise(beside)]
    at_full_speed = sum(sum(each) / slow for each, slow in zip(rounds, slower, strict=True)) / len(steps)
    return mean, mean / at_full_speed


def _alternated(recipe: Recipe, steps: int, reference: Contender) -> tuple[list[dict[str, Any]], list[float]]:
    """Answers of the recipe's process by round, and seconds of a step of the reference around every round."""

    def beside() -> float:
        # The first step after a change of places finds cold caches.
        return statistics.median(reference.ask({"steps": REFERENCE_STEPS})["seconds"][1:])

    setting = {"name": recipe.name, "recipe": recipe.to_dict(), "memory": True}
    try:
        with Contender(TRAINER, setting) as contender:
            answers, between = [], [beside()]
            for done in range(0, steps, ROUND):
                answers.append(contender.ask({"steps": min(ROUND, steps - done)}) | contender.ready)
                between.append(beside())
    except RuntimeError as error:
        raise WorkbenchError("\n".join(str(error).splitlines()[-5:])) from None
    return answers, between


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
    """Of this machine, measured for this file unless they stand in it."""
    known, name = results.data["rates"], " ".join(map(str, mode))
    if name not in known:
        results.put(rates=known | {name: measured(mode).model_dump(mode="json")})
    return Rates.model_validate(results.data["rates"][name])


def show(console: Console, found: Mapping[str, Mapping[str, Any]]) -> None:
    """One line per recipe: seconds per step, MiB and seconds of compiling, forecast and measured."""
    heads = ("s/step", "forecast", "error", "same speed", "MiB", "forecast", "error", "compile s", "forecast")
    table = Table("recipe", *heads)
    for name, each in found.items():
        if "error" in each:
            table.add_row(name, each["error"].splitlines()[-1][:60])
            continue
        real, ahead = each["measured"], each["forecast"]
        table.add_row(
            name, f"{real['seconds']:.3f}", f"{ahead['seconds']:.3f}", f"{each['time_error']:+.0%}",
            f"{each['same_speed_error']:+.0%}{'' if each['inside'] else ' outside'}",
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
    parser.add_argument("--out", type=Path, default=Path("docs/results/forecast.json"), help="the file to fill")
    options = parser.parse_args(argv)
    console, chosen = Console(), cases(options.threads, options.steps)
    if unknown_names := sorted(set(options.only or ()) - chosen.keys()):
        raise WorkbenchError(f"no recipe is called {unknown_names[0]!r}; the set has {', '.join(map(repr, chosen))}")
    results = ResultsFile(options.out, "forecast")
    with contextlib.ExitStack() as stack:
        stack.enter_context(results.own())
        if options.again or "rates" not in results.data:
            results.put(rates={}, runs={})
        # An empty cache: how long compiling takes is measured, too.
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = stack.enter_context(tempfile.TemporaryDirectory())
        # By precision, processes that train the calibration's model.
        references: dict[str, Contender] = {}
        for name in options.only or chosen:
            recipe = chosen[name]
            if (recipe.engine().compiled and options.eager) or results.known(name, recipe) is not None:
                continue
            console.print(name, style="dim")
            rates = _rates(results, recipe.engine().mode)
            if (precision := recipe.engine().precision) not in references:
                setting = {"name": f"reference {precision}", "recipe": recipe.to_dict(), "reference": True}
                references[precision] = stack.enter_context(Contender(TRAINER, setting))
            # One that fails, for want of a package or of memory, says so in the table; the others go on.
            try:
                case = compare(recipe, options.steps, rates, references[precision])
            except WorkbenchError as error:
                case = {"error": str(error)}
            results.add(name, recipe, {"mode": MODES[recipe.engine().compiled], **case})
            results.put(summary=summary(results.data["runs"]))
    show(console, results.data["runs"])
    console.print_json(data=results.data.get("summary", {}))
    console.print(f"saved {options.out}")
    return 0
