"""What all telemetry costs: paired blocks of steps with it on and off, in one process."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from workbench import presets
from workbench.bench.overhead import telemetry_overhead
from workbench.bench.result import save


def main(argv: list[str]) -> int:
    """``workbench bench telemetry``."""
    parser = argparse.ArgumentParser(prog="workbench bench telemetry", description=__doc__)
    parser.add_argument("--preset", default="bert_tiny")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="change the recipe")
    parser.add_argument("--rounds", type=int, default=60, help="pairs of blocks")
    parser.add_argument("--steps", type=int, default=10, help="steps per block")
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    options = parser.parse_args(argv)
    recipe = presets.get(options.preset).with_assignments(options.set)
    result = telemetry_overhead(recipe, options.rounds, options.steps)
    console = Console()
    low, high = result["interval"]
    console.print(
        f"telemetry (scalars every {recipe.execution.scalars_every}, layers every {recipe.execution.layers_every} "
        f"steps) costs {result['overhead']:+.2%} of step time (95% interval {low:+.2%} to {high:+.2%}); ms per step: "
        f"{result['off_ms']:.1f} off, {result['scalars_ms']:.1f} with scalars, {result['layers_ms']:.1f} with layers"
    )
    console.print(f"saved {save('telemetry', {'recipe': recipe.to_dict(), **result}, options.out)}")
    return 0
