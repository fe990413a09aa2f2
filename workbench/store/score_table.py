"""Scores of benchmarks as rows: each beside the untrained model, what needs no model, and other seeds of the recipe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from workbench.base.text import aligned, decimal
from workbench.store.evaluations import HELDOUT_LOSS, Measured, benchmark_scores, is_part, score_label, scores_by_step
from workbench.store.folder import RunFolder, read_object

_NOT_THE_RECIPE = ("seed", "name", "notes")
Scores = Mapping[int, Mapping[str, Measured]]
"""By step and name."""


@dataclass(frozen=True)
class ScoreRow:
    """One score of a run.

    Attributes:
        name: of the score. step: at which it was measured.
        score: value, unit and what it is held against.
        seeds: values of runs of the same recipe with any seed, this one among them.
    """

    name: str
    step: int
    score: Measured
    seeds: tuple[float, ...] = ()

    @property
    def value(self) -> str:
        """Say the value: shares with four decimals, what is huge with four digits."""
        value = self.score.value
        return f"{value:.4g}" if value is not None and abs(value) >= 1e5 else decimal(value, 4)

    @property
    def over_seeds(self) -> str:
        """Say mean and standard deviation over seeds; empty for a single run."""
        if len(self.seeds) < 2:
            return ""
        return f"{fmean(self.seeds):.4f} ± {stdev(self.seeds):.4f} ({len(self.seeds)} seeds)"

    @property
    def beside(self) -> str:
        """Say what it is held against."""
        return ", ".join(f"{name} {value:.4g}" for name, value in self.score.beside.items())


def score_rows(folder: RunFolder) -> list[ScoreRow]:
    """Return the newest scores of benchmarks of a run, with those of other seeds of its recipe in its runs folder."""
    ours = read_object(folder.recipe)
    others = [RunFolder(path.parent) for path in folder.path.parent.glob("*/scores.json")]
    same = [each for each in others if each.path != folder.path and is_same_but_seed(read_object(each.recipe), ours)]
    return rows_of(scores_by_step(folder), [scores_by_step(each) for each in same])


def rows_of(scores: Scores, others: Iterable[Scores] = ()) -> list[ScoreRow]:
    """Return the newest score of each benchmark as rows.

    Args:
        scores: of a run by step and name. others: of runs of the same recipe with other seeds.
    """
    seeds = [benchmark_scores(each) for each in others]
    found = {name: each for name, each in benchmark_scores(scores).items() if not name.startswith(HELDOUT_LOSS)}
    return [ScoreRow(name, step, score, _values(name, score, seeds)) for name, (step, score) in found.items()]


def is_same_but_seed(recipe: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return True for two recipes, as JSON, that differ in seed, name and notes alone."""
    ours, theirs = ({k: v for k, v in each.items() if k not in _NOT_THE_RECIPE} for each in (recipe, other))
    return ours == theirs


def _values(name: str, score: Measured, others: Iterable[Mapping[str, tuple[int, Measured]]]) -> tuple[float, ...]:
    values = [score.value, *(found[name][1].value for found in others if name in found)]
    return tuple(value for value in values if value is not None and math.isfinite(value))


def score_text(rows: Iterable[ScoreRow], parts: bool = True) -> str:
    """Return scores as a table of text, parts of a benchmark below it, and a line that says how each was measured."""
    rows = [row for row in rows if parts or not is_part(row.name)]
    if not rows:
        return "no scores"
    cells = [("score", "value", "held against", "items", "step", "over seeds")]
    cells += [
        (
            "  " + row.name.partition("/")[2] if is_part(row.name) else score_label(row.name, row.score),
            row.value, row.beside, f"{row.score.count:,}", f"{row.step:,}", row.over_seeds,
        )
        for row in rows
    ]  # fmt: skip
    return "\n".join([aligned(cells), *notes_of(rows)])


def notes_of(rows: Iterable[ScoreRow]) -> list[str]:
    """Say how scores were measured, once for those that were measured alike."""
    alike: dict[str, list[str]] = {}
    for row in rows:
        if row.score.note:
            alike.setdefault(row.score.note, []).append(row.name)
    return [f"{', '.join(names)}: {note}." for note, names in alike.items()]
