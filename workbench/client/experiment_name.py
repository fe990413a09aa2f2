"""What tables call the race, sweep or tuning that a run belongs to: the tag of the run, and when that began."""

from __future__ import annotations

from collections.abc import Iterable

_NOUNS = ("race:", "sweep:", "tuning:")
_BEGUN = len("20260131-081500")


def experiment_name(tag: str, run_id: str) -> str:
    """``race:NAME 20260131-081500``: the moment with which the ids of its runs begin tells two of one name apart."""
    return f"{tag} {run_id[:_BEGUN]}"


def experiment_of(run_id: str, tags: Iterable[str]) -> str:
    """The name of a run's experiment; empty for any other run.

    Example:
        >>> experiment_of("20260131-081500-mine-s0-0a1b2c", ["good", "race:deep"]), experiment_of("a", ["race"])
        ('race:deep 20260131-081500', '')
    """
    tag = next((tag for tag in tags if tag.startswith(_NOUNS)), None)
    return "" if tag is None else experiment_name(tag, run_id)
