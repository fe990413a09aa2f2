"""Words that all experiments use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workbench.base.text import many
from workbench.experiments.plan import Cost
from workbench.experiments.readings import Reading
from workbench.plots.forecast_facts import MEASURED_SPEED

UNITS = {"nats": "nats", "bits_per_byte": "bits per byte"}
FINAL = "it cannot be resumed; start it anew with the same command or call: what its runs reached so far stays"
"""The way out of an experiment that was cancelled or has failed."""


def cost_line(what: str, cost: Cost, at_once: int, more: str = "") -> str:
    """Return one line about what an experiment takes.

    Example:
        >>> cost_line("4 runs", Cost(4, 600.0, 0.5), 2)
        '4 runs, 2 at a time: about 10 min (from speeds measured on the machine), 0.5 core hours'
    """
    hours = f", {cost.core_hours:.2g} core hours" if cost.core_hours else ""
    return f"{what}, {at_once} at a time: about {duration(cost.seconds)} ({MEASURED_SPEED}){hours}{more}"


def underway(readings: Iterable[Reading]) -> list[str]:
    """Count the runs that train and those that wait for their turn.

    Example:
        >>> underway([Reading("going", doing="running"), Reading("going", doing="queued"), Reading("done")])
        ['1 run going', '1 run waiting']
    """
    doing = [each.doing for each in readings if each.status == "going"]
    waiting = doing.count("queued")
    counted = ((len(doing) - waiting, "going"), (waiting, "waiting"))
    return [f"{many(count, 'run')} {what}" for count, what in counted if count]


def span(values: Sequence[int]) -> str:
    """Return the smallest and the largest of some numbers.

    Example:
        >>> span([200, 1000]), span([200, 200])
        ('200 to 1,000', '200')
    """
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def remaining(seconds: float) -> str:
    """Return a rest of time, fine enough that every run that ends is seen in it.

    Example:
        >>> remaining(42), remaining(112), remaining(2400)
        ('40 s', '1 min 50 s', '40 min')
    """
    if seconds >= 600:
        return duration(seconds)
    minutes, rest = divmod(5 * round(seconds / 5), 60)
    return " ".join(f"{count} {unit}" for count, unit in ((minutes, "min"), (rest, "s")) if count) or "a few seconds"


def duration(seconds: float) -> str:
    """Return a rounded duration.

    Example:
        >>> duration(42), duration(600), duration(7500)
        ('42 s', '10 min', '2.1 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
