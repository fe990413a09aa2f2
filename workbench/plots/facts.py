"""The rows of every table about a run: a few words and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.base.text import UNKNOWN, count, decimal, passes_words
from workbench.store.evaluations import LABELS, PART_LOSS, benchmark_scores, is_part, score_label
from workbench.store.measured import (
    bits_per_byte,
    heldout_loss,
    learned_in_words,
    measured,
    memory_for_training,
    speed_in_words,
)
from workbench.telemetry.quantities import MEMORY_FOR_TRAINING, SECONDS_TRAINED
from workbench.telemetry.waiting import waiting_fact

if TYPE_CHECKING:
    from workbench.store.view import RunView


def facts(view: RunView) -> dict[str, str]:
    """Return rows of a run's table: label -> formatted value, ``-`` where the run has not said it (yet)."""
    levels = view.references.levels
    mfu = measured(view, "mfu")
    parameters = measured(view, "parameters")
    if parameters is None:
        parameters = view.environment.get("parameters")
    steps = measured(view, "steps")
    slowest = waiting_fact(view.telemetry.scalars)
    return {
        "state": str(view.status),
        "held-out loss (nats)": decimal(heldout_loss(view), 3),
        "score": view.references.title,
        "bits per byte": decimal(bits_per_byte(view), 3),
        "word frequencies (nats)": decimal(levels.get("word frequencies"), 3),
        "neighbours (nats)": decimal(levels.get("neighbours"), 3),
        "what was learned": learned_in_words(view),
        "tokens/s": speed_in_words(view),
        "MFU": UNKNOWN if mfu is None else f"{100 * mfu:.1f}%",
        **({"slowest process": slowest} if slowest else {}),
        MEMORY_FOR_TRAINING: decimal(memory_for_training(view), 3),
        "steps": count(steps),
        "tokens": count(measured(view, "tokens")),
        "text": _passes(view),
        SECONDS_TRAINED: decimal(measured(view, "seconds"), 1),
        "parameters": count(parameters),
        **{
            score_label(name, score): f"{decimal(score.value, 4)} at step {step:,}"
            + (f" over {score.count:,} tokens" if name in LABELS or name.startswith(PART_LOSS) else "")
            for name, (step, score) in benchmark_scores(view.scores).items()
            if not is_part(name) or name.startswith(PART_LOSS)
        },
    }


def _passes(view: RunView) -> str:
    passes = measured(view, "data.epochs")
    # Damaged folders have anything there.
    data = view.environment.get("data")
    train = data.get("train") if isinstance(data, dict) else None
    tokens = train.get("tokens") if isinstance(train, dict) else None
    return passes_words(passes, tokens) if passes is not None and isinstance(tokens, int) else UNKNOWN


def facts_side_by_side(views: Sequence[RunView]) -> dict[str, list[str]]:
    """Return the rows of several runs' table: label -> value of each; a score may be one run's alone."""
    columns = [facts(view) for view in views]
    labels = dict.fromkeys(label for column in columns for label in column)
    return {label: [column.get(label, UNKNOWN) for column in columns] for label in labels}
