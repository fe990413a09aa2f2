"""Let contenders take turns, and compare their rounds: speeds, losses, and the factors along a chain."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

from workbench.bench.contender import take_turns
from workbench.bench.result import spread
from workbench.plots.waterfall import waterfall_png


class Entrant(NamedTuple):
    """Describe a contender before it starts: the module of its process, and its setting."""

    module: str
    setting: dict[str, Any]


class SpeedRounds(NamedTuple):
    """Hold the answers of contenders over all rounds, by name.

    Attributes:
        ready: what each said after its warm-up.
        answers: of each, by round.
        failed: the last words of those that ended on the way; they are in neither of the others.
    """

    ready: dict[str, dict[str, Any]]
    answers: dict[str, list[dict[str, Any]]]
    failed: dict[str, str]

    def rates(self) -> dict[str, list[float]]:
        """Return tokens per second by round."""
        return {name: [each["tokens"] / each["seconds"] for each in answers] for name, answers in self.answers.items()}

    def losses(self, name: str) -> list[float]:
        """Return the losses of a contender in nats, from its first step on."""
        return [
            *self.ready[name]["warmup"]["losses"],
            *(loss for each in self.answers[name] for loss in each["losses"]),
        ]


def take_rounds(
    entrants: Mapping[str, Entrant], *, rounds: int, steps: int, warmup: int, all_needed: bool = True
) -> SpeedRounds:
    """Start all, one after the other, and let them take turns.

    Args:
        rounds: in which each takes ``steps`` steps.
        warmup: steps before; compilation happens there.
        all_needed: False goes on without those that end on the way.

    Raises:
        RuntimeError: a contender ended.
    """
    settings = [
        (module, {**setting, "name": name, "warmup": warmup, "memory": True})
        for name, (module, setting) in entrants.items()
    ]
    failed: dict[str, str] = {}
    ready, answers = take_turns(settings, rounds, steps, None if all_needed else failed)
    return SpeedRounds(ready, answers, failed)


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """Return the spread of the quotients by round: a slow minute hits both, and cancels."""
    return spread([a / b for a, b in zip(ours, theirs, strict=True)])


def waterfall(readings: Mapping[str, Sequence[float]], chain: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the factors along a chain.

    Args:
        readings: by contender, one number per round; all of the same rounds.
        chain: (what is new, name of the contender), the starting point first.

    Returns:
        ``start``, ``whole``, and ``steps`` of ``{"what", "contender", "factor", "min", "max"}``. A factor is the
        quotient of two medians, so their product is ``whole``; least and greatest are of the quotients by round.
    """
    medians = {name: statistics.median(readings[name]) for _, name in chain}
    steps = [
        {
            "what": what, "contender": name, "factor": medians[name] / medians[before],
            "min": paired["min"], "max": paired["max"],
        }
        for (_, before), (what, name) in itertools.pairwise(chain)
        for paired in (ratios(readings[name], readings[before]),)
    ]  # fmt: skip
    (_, first), (_, last) = chain[0], chain[-1]
    return {"start": first, "whole": medians[last] / medians[first], "steps": steps}


def table(found: Mapping[str, Any], title: str) -> Table:
    """Return a table with a row per factor of :func:`waterfall`."""
    shown = Table("what", "factor", "range by round", "so far", title=title)
    so_far = 1.0
    for step in found["steps"]:
        so_far *= step["factor"]
        shown.add_row(
            step["what"], f"{step['factor']:.2f}x", f"{step['min']:.2f} to {step['max']:.2f}", f"{so_far:.2f}x"
        )
    return shown


def draw(found: Mapping[str, Any], title: str, path: Path) -> Path:
    """Draw a :func:`waterfall` as a PNG at ``path``."""
    # Beside the readings, from which it can be drawn again.
    path.write_bytes(waterfall_png(title, found["start"], [(step["what"], step["factor"]) for step in found["steps"]]))
    return path
