"""Single numbers and sentences from one reading of a run: losses, speed, what was learned, its progress."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.base.text import UNKNOWN, count, plain, share_done
from workbench.store.reached import COUNTED
from workbench.store.state import ENDED_WELL, FINAL
from workbench.telemetry.baselines import References, known_text
from workbench.telemetry.baselines import learned_in_words as in_words
from workbench.telemetry.scored_text import part_mark
from workbench.telemetry.speed import MEAN, NOW
from workbench.telemetry.streams import number

if TYPE_CHECKING:
    from workbench.store.view import RunView


def last_result(view: RunView) -> dict[str, Any]:
    """Return the result that the run wrote at its end; empty where it has none, or goes on since or failed later."""
    return (view.evaluations.get("result") or {}) if view.status in ENDED_WELL else {}


def heldout_loss(view: RunView) -> float | None:
    """Return the latest held-out loss in nats: of the final result, else of the last evaluation."""
    result = last_result(view)
    # The result's is measured on all of the held-out text, those during training on a part of it.
    if result.get("heldout_loss") is not None:
        return number(result["heldout_loss"])
    if points := _points(view):
        return number(points[-1]["loss"])
    _, losses = view.telemetry.series("heldout_loss")
    stated = losses[-1] if losses else view.state.get("heldout_loss")
    return None if stated is None else number(stated)


def bits_per_byte(view: RunView) -> float | None:
    """Return the latest held-out bits per byte: of the final result, else of the last evaluation."""
    for source in (last_result(view), *_points(view)[-1:]):
        if source.get("bits_per_byte") is not None:
            return number(source["bits_per_byte"])
    return None


def measured(view: RunView, name: str) -> float | None:
    """Return a number of the final result, else of the state, else the last one of the telemetry.

    ``steps``, ``tokens`` and ``seconds`` are those of one moment, which the telemetry may be beyond.
    """
    stated = COUNTED.get(name, name)
    for source, key in ((last_result(view), name), (view.state, stated)):
        if source.get(key):  # a state that has not been written to yet says 0
            return number(source[key])
    if stated in COUNTED.values():
        return None
    _, values = view.telemetry.series(name)
    return next((value for value in reversed(values) if math.isfinite(value)), None)


def speed_in_words(view: RunView) -> str:
    """Return the tokens per second of a run and what they are of: its last ten seconds, or its whole training."""
    speed = measured(view, "tokens_per_second")
    return UNKNOWN if speed is None else f"{count(speed)} ({MEAN if view.status in FINAL else NOW})"


def memory_for_training(view: RunView) -> float | None:
    """Return GiB that training took at most, beyond what the process held before there was a model;
    None if not said.
    """
    _, readings = view.telemetry.series("memory_gib")
    known, before = list(filter(math.isfinite, readings)), number(view.environment.get("memory_before_gib"))
    return max(0.0, max(known) - before) if known and math.isfinite(before) else None


def learned_in_words(view: RunView) -> str:
    """Return what the latest held-out loss shows was learned, or why nothing can be said."""
    loss = heldout_loss(view)
    if loss is None:
        return "not evaluated" if view.status in FINAL else "not evaluated yet"
    return verdict(loss, view.references)


def verdict(loss: float, references: References) -> str:
    """Return what a held-out loss in nats shows was learned, held against its baselines."""
    if not math.isfinite(loss):
        return "diverged: the held-out loss is not a number"
    if references.baselines is None:
        return f"not known: nothing to hold the {references.title} against"
    return ", ".join(filter(None, (in_words(loss, references.baselines), known_text(references.heldout_overlap))))


def failure(view: RunView) -> str:
    """Return the error of a run that failed, empty for any other."""
    return str(view.state.get("error") or "") if view.status in ("failed", "lost") else ""


def progress_line(name: str, status: str, state: Mapping[str, Any]) -> str:
    """Return a run's progress in one line for a log.

    Args:
        state: as in ``state.json``.

    Example: ``fast: running 40%, step 1,200, loss 5.120, held-out 5.400, 8,312 tokens/s``
    """
    return ", ".join([f"{plain(name)}: {status} {share_done(state.get('progress') or 0)}", *progress_parts(state)])


def progress_parts(state: Mapping[str, Any]) -> list[str]:
    """Step, losses, speed and message of a run's state, as far as it says them; ``~``: of a part of the tokens."""
    parts = [f"step {count(state.get('step'))}"]
    for name, key in (("loss ", "loss"), (f"held-out {part_mark(str(state.get('status')))}", "heldout_loss")):
        if state.get(key) is not None:
            parts.append(f"{name}{number(state[key]):.3f}")
    if state.get("tokens_per_second"):
        span = MEAN if state.get("status") in FINAL else NOW
        parts.append(f"{count(state['tokens_per_second'])} tokens/s ({span})")
    # `plain`, because this goes into logs and terminals: a message may hold line breaks or control codes.
    return [*parts, plain(state["message"], 200)] if state.get("message") else parts


def _points(view: RunView) -> list[dict[str, Any]]:
    """Return held-out evaluations with a loss; one that could not be measured is null there."""
    return [point for point in view.evaluations.get("heldout") or [] if point.get("loss") is not None]
