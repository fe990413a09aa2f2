"""What can be said about a run in a few words and numbers: the rows of every table, and what the model has learned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.plots.curves import curve, heldout_curve
from workbench.printable import plain
from workbench.telemetry import number

if TYPE_CHECKING:
    from workbench.runs.view import RunView

UNKNOWN = "-"


def heldout_loss(view: RunView) -> float | None:
    """The latest held-out loss in nats: of the final result, else of the last evaluation."""
    result = view.evaluations.get("result") or {}
    # The result's is measured on all of the held-out text, those during training on a part of it.
    if result.get("heldout_loss") is not None:
        return number(result["heldout_loss"])
    points = heldout_curve(view)
    if len(points):
        return float(points.y_N[-1])
    stated = view.state.get("heldout_loss")
    return None if stated is None else number(stated)


def bits_per_byte(view: RunView) -> float | None:
    """The latest held-out bits per byte of scored text: of the final result, else of the last evaluation."""
    points = [point for point in view.evaluations.get("heldout") or [] if point.get("loss") is not None]
    for source in (view.evaluations.get("result") or {}, *points[-1:]):
        if source.get("bits_per_byte") is not None:
            return number(source["bits_per_byte"])
    return None


def learned_in_words(view: RunView) -> str:
    """The one word of :func:`workbench.floors.learned` in a sentence, or why there is none."""
    yardstick, loss = view.yardstick, heldout_loss(view)
    if loss is None:
        return "not evaluated yet"
    if not math.isfinite(loss):
        return "diverged: the held-out loss is not a number"
    word = yardstick.learned(loss)
    if word is None or yardstick.floors is None:
        return f"not known: nothing to hold the {yardstick.title} against"
    below = f"{yardstick.floors.unigram - loss:.2f} nats below word frequencies"
    more = {"neighbours": f": {below}", "context": f": {below}", "word frequencies": " only"}
    return f"has learned {word}{more.get(word, '')}"


def measured(view: RunView, name: str) -> float | None:
    """A number of the final result, else of the state, else the last one of the telemetry."""
    for source in (view.evaluations.get("result") or {}, view.state):
        if source.get(name):  # a state that has not been written to yet says 0
            return number(source[name])
    if name in ("step", "steps", "tokens", "seconds"):
        last: dict[str, Any] = view.telemetry.scalars[-1] if view.telemetry.scalars else {}
        found = last.get("step" if name == "steps" else name)
        return None if found is None else number(found)
    return curve(view, name).last


def facts(view: RunView) -> dict[str, str]:
    """Rows of a run's table: label -> formatted value, ``-`` where the run has not said it (yet)."""
    levels = view.yardstick.levels
    mfu = measured(view, "mfu")
    parameters = measured(view, "parameters")
    if parameters is None:
        parameters = view.environment.get("parameters")
    steps = measured(view, "steps") or measured(view, "step")
    return {
        "status": str(view.status),
        "held-out loss (nats)": decimal(heldout_loss(view), 3),
        "score": view.yardstick.title,
        "bits per byte": decimal(bits_per_byte(view), 3),
        "word frequencies (nats)": decimal(levels.get("word frequencies"), 3),
        "neighbours (nats)": decimal(levels.get("neighbours"), 3),
        "what was learned": learned_in_words(view),
        "tokens/s": count(measured(view, "tokens_per_second")),
        "MFU": UNKNOWN if mfu is None else f"{100 * mfu:.1f}%",
        "steps": count(steps),
        "tokens": count(measured(view, "tokens")),
        "seconds": decimal(measured(view, "seconds"), 1),
        "parameters": count(parameters),
    }


def progress_line(view: RunView) -> str:
    """Where a run is now, in one line for a log.

    Example: ``fast: running 40%, step 1,200, loss 5.120, held-out 5.400, 8,312 tokens/s``
    """
    where = f"{plain(view.name)}: {view.status} {view.state.get('progress') or 0:.0%}"
    return ", ".join([where, *progress_parts(view.state)])


def progress_parts(state: Mapping[str, Any]) -> list[str]:
    """Step, losses, speed and message of a run's state, as far as it says them."""
    parts = [f"step {count(state.get('step'))}"]
    for name, key in (("loss", "loss"), ("held-out", "heldout_loss")):
        if state.get(key) is not None:
            parts.append(f"{name} {number(state[key]):.3f}")
    if state.get("tokens_per_second"):
        parts.append(f"{count(state['tokens_per_second'])} tokens/s")
    # `plain`, because this goes into logs and terminals: a message may hold line breaks or control codes.
    return [*parts, plain(state["message"], 200)] if state.get("message") else parts


def decimal(value: float | None, digits: int) -> str:
    """Fixed decimals, or a dash for what is not known."""
    return UNKNOWN if value is None else f"{value:.{digits}f}"


def count(value: float | None) -> str:
    """A number of things, short: 812, 12,345, 3.42M, 1.10B.

    Example:
        >>> count(12345), count(3_420_000), count(None)
        ('12,345', '3.42M', '-')
    """
    if value is None:
        return UNKNOWN
    if not math.isfinite(value):
        return str(value)
    for size, letter in ((1e9, "B"), (1e6, "M")):
        if abs(value) >= size:
            return f"{value / size:.2f}{letter}"
    return f"{value:,.0f}"


def failure(view: RunView) -> str:
    """The error of a run that failed, empty for any other."""
    return str(view.state.get("error") or "") if view.status in ("failed", "lost") else ""
