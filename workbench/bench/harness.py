"""One harness of benchmarks: a spec says what is measured and shown, the harness does the rest.

The rest: the command's options, turns in blocks A B B A, the result file, and the last line printed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from workbench.bench.result import save
from workbench.recipes import presets
from workbench.recipes.recipe import Recipe

Rival = TypeVar("Rival")
Options = argparse.Namespace


def in_turn(rivals: Sequence[Rival], number: int) -> Sequence[Rival]:
    """Return the order of round ``number``: first and last change places, so that a drift within a round cancels."""
    return rivals if number % 2 == 0 else rivals[::-1]


@dataclass(frozen=True)
class Bench:
    """Describe a benchmark that is over in one go.

    Args:
        name: of the command.
        about: its help.
        measure: gives the result to save, from the options.
        show: prints a result; gets the path of its JSON file, for pictures beside it.
        preset: the default of ``--preset``, which comes with ``--set``; None for neither.
        rounds, steps, warmup: defaults of these options; None leaves one out.
        options: all other options, as ``add_argument`` takes them.
        out: option and default of the folder for the JSON file.
        saved_as: stem of that file; ``name`` when empty.
    """

    name: str
    about: str | None
    measure: Callable[[Options], dict[str, Any]]
    show: Callable[[Mapping[str, Any], Console, Path], None]
    preset: str | None = None
    rounds: int | None = None
    steps: int | None = None
    warmup: int | None = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    out: tuple[str, str] = ("--out", "out/bench")
    saved_as: str = ""

    def main(self, argv: list[str]) -> int:
        """Measure, save the JSON, print the tables; returns the exit code."""
        parser = argparse.ArgumentParser(prog=f"workbench bench {self.name}", description=self.about)
        if self.preset is not None:
            parser.add_argument("--preset", default=self.preset, help="the recipe (%(default)s)")
            parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="change the recipe")
        helps = {
            "rounds": "alternating rounds", "steps": "timed steps per round and contender",
            "warmup": "steps before, not counted",
        }  # fmt: skip
        for name, text in helps.items():
            if (default := getattr(self, name)) is not None:
                parser.add_argument(f"--{name}", type=int, default=default, help=f"{text} (%(default)s)")
        for option, settings in self.options.items():
            parser.add_argument(option, **settings)
        option, folder = self.out
        parser.add_argument(option, dest="out", type=Path, default=Path(folder), help="folder for the JSON file")
        options = parser.parse_args(argv)
        result = self.measure(options)
        path = save(self.saved_as or self.name, result, options.out)
        # In a log file there is no terminal to fit into.
        console = Console(width=None if sys.stdout.isatty() else 150)
        self.show(result, console, path)
        console.print(f"saved {path}", markup=False)
        return 0


def recipe_of(options: Options) -> Recipe:
    """Return the recipe that ``--preset`` and ``--set`` name."""
    return presets.get(options.preset).with_assignments(options.set)


def rounds_of(options: Options) -> dict[str, Any]:
    """Return ``rounds``, ``steps`` and ``warmup`` as the functions that measure take them."""
    return {name: getattr(options, name) for name in ("rounds", "steps", "warmup")}


ONLY: Mapping[str, Any] = {"nargs": "+", "metavar": "NAME", "help": "these only"}
"""Settings of an option ``--only``."""
