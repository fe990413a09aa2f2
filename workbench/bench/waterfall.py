"""Which factor of a speed-up comes from what: a chain of contenders, each unlike the one before in one thing."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from workbench.bench.result import spread
from workbench.plots.waterfall import waterfall_png


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """Spread of the quotients by round: a slow minute hits both, and cancels."""
    return spread([a / b for a, b in zip(ours, theirs, strict=True)])


def waterfall(readings: Mapping[str, Sequence[float]], chain: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The factors along a chain.

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
    """A row per factor of :func:`waterfall`."""
    shown = Table("what", "factor", "range by round", "so far", title=title)
    so_far = 1.0
    for step in found["steps"]:
        so_far *= step["factor"]
        shown.add_row(
            step["what"], f"{step['factor']:.2f}x", f"{step['min']:.2f} to {step['max']:.2f}", f"{so_far:.2f}x"
        )
    return shown


def draw(found: Mapping[str, Any], title: str, path: Path) -> Path:
    """The picture of a :func:`waterfall`, a PNG at ``path``."""
    # Beside the readings, from which it can be drawn again.
    path.write_bytes(waterfall_png(title, found["start"], [(step["what"], step["factor"]) for step in found["steps"]]))
    return path
