"""``workbench forecast``: what a recipe will take on this machine, before it is run."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from workbench.base.errors import WorkbenchError
from workbench.base.text import duration_words, many, plain
from workbench.cli.training import recipe_from
from workbench.plots.forecast_compared import compared
from workbench.plots.forecast_facts import bytes_words, compiling, cost_of, whole_forecast
from workbench.store.folder import read_json

if TYPE_CHECKING:
    from workbench.forecasting.forecast import Forecast
    from workbench.recipes.recipe import Recipe


def show(options: argparse.Namespace) -> int:
    """Print the forecast, as text or as one JSON object.

    Raises:
        WorkbenchError: the price is negative, the recipe or run is wrong, or the machine cannot be measured.
    """
    from workbench.forecasting.forecast import forecast, measure_again

    if options.price is not None and not options.price >= 0:
        raise WorkbenchError(f"--price must be >= 0, got {options.price:g}")
    if options.run:
        return _beside(options)
    recipe = recipe_from(options)
    if options.devices:
        return _on_devices(options, recipe)
    if options.measure:
        measure_again(recipe, lambda line: print(line, file=sys.stderr))
    found = forecast(recipe, price_per_hour=options.price, say=lambda line: print(line, file=sys.stderr))
    print(json.dumps(found.to_dict()) if options.json else summary(recipe, found))
    return 0


def _beside(options: argparse.Namespace) -> int:
    """Print the forecast of a run, that kept with it or one made now, beside what the run has measured."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from workbench.client.fork_point import own_part
    from workbench.client.run import Run
    from workbench.forecasting.forecast import forecast

    if options.measure:
        raise WorkbenchError("--run shows what a run was forecast: leave out --measure, which is for the next ones")
    if options.set or options.text or options.budget or options.seed is not None or options.name:
        raise WorkbenchError("--run compares a run with the forecast of its own recipe: leave out what changes it")
    run = Run(options.run, options.runs)
    found = whole_forecast(read_json(run.folder.forecast))
    if found is None:
        own, after = own_part(run.folder, run.recipe)
        found = forecast(own, say=lambda line: print(line, file=sys.stderr)).to_dict() | after
    if options.price is not None:
        found["cost"] = cost_of(found, options.price)[1]
    rows = compared(found, run.view())
    if options.json:
        print(json.dumps({**found, "run": run.id, "compared": [asdict(row) for row in rows]}))
    else:
        table = Table("", "forecast", "measured", "of the forecast", "", box=None)
        for row in rows:
            table.add_row(*map(Text, (row.name, row.ahead, row.measured, row.ratio_words, row.words)))
        print(f"{plain(run.name)}: forecast and measured")
        Console(soft_wrap=True).print(table)
    return 0


def _on_devices(options: argparse.Namespace, recipe: Recipe) -> int:
    """Print a step and a run on each number of devices, or one JSON object."""
    from rich.console import Console
    from rich.table import Table

    from workbench.forecasting.scale import Cluster, scaled

    devices = _numbers("--devices", options.devices, int, "whole numbers, such as 1,2,8")
    inside, between, node = _numbers("--links", options.links, float, "three numbers, such as 250,22,8", 3)
    cluster = Cluster(int(node), inside, between)
    found = scaled(
        recipe, devices, cluster, weak=options.weak, critical=options.critical or math.inf,
        say=lambda line: print(line, file=sys.stderr),
    )  # fmt: skip
    if options.json:
        print(json.dumps({"links": asdict(cluster), "devices": [each.to_dict() for each in found]}))
        return 0
    table = Table("devices", "rows each", "step", "passes", "every step", "gradients", "speed-up", "run", box=None)
    for each in found:
        speed = found[0].seconds / each.seconds
        parts = (each.step, each.computing, each.fixed, each.waiting)
        table.add_row(str(each.devices), f"{each.rows:g}", *(f"{1e3 * seconds:,.1f} ms" for seconds in parts),
                      f"{speed:.2f}x", duration_words(each.seconds))  # fmt: skip
    Console(soft_wrap=True, width=None if sys.stdout.isatty() else 120).print(table)
    print(
        "step = passes over its rows + what every step takes whatever the rows + sending gradients, of which nothing\n"
        f"hides behind the passes. A device is all of this machine. Links, {options.links}: GB/s within a node and\n"
        "between nodes, and devices of a node. speed-up: of the run, beside the first row."
    )
    return 0


def _numbers(option: str, text: str, read: Callable[[str], Any], legal: str, many: int = 0) -> list[Any]:
    """Return the numbers of a list with commas; ``many`` of them, or any number for 0."""
    try:
        found = [read(each) for each in text.split(",")]
    except ValueError:
        found = []
    if not found or (many and len(found) != many):
        raise WorkbenchError(f"{option} takes {legal}, got '{text}'")
    return found


def summary(recipe: Recipe, found: Forecast) -> str:
    """Return the forecast in a few lines."""
    memory = ", ".join(f"{part} {bytes_words(number)}" for part, number in found.memory.items())
    seconds, low, high = map(duration_words, (found.seconds, found.seconds_low, found.seconds_high))
    lines = [
        f"{recipe.name}: {many(found.steps, 'step')}, {found.tokens:,} tokens",
        f"parameters  {found.parameters:,}",
        f"FLOPs       {found.flops:.3g}, {found.flops_per_token:.3g} per token",
        f"memory      {bytes_words(found.memory_bytes)} of {bytes_words(found.device_memory_bytes)}: {memory}",
        f"speed       {found.tokens_per_second:,.0f} tokens/s",
        f"time        {seconds}" + (f" ({low} to {high})" if low != high else ""),
    ]
    before = (compiling(found.to_dict()), found.preparation)
    lines += [f"            {each}" for each in before if each]
    if found.cost is not None:
        lines.append(f"cost        {found.cost:.2f}")
    if found.memory_bytes > found.device_memory_bytes:
        lines.append("this does not fit; lower execution.micro_batch_size, data.batch_size or the model")
    if found.refusal:
        lines.append(f"this run is {found.refusal}")
    return "\n".join([*lines, *(f"note: {note}" for note in found.notes)])
