"""Rounds of contenders as speeds and losses: what a comparison by whole rounds needs of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from workbench.bench.contender import take_turns


class Entrant(NamedTuple):
    """A contender before it starts: the module of its process, and its setting."""

    module: str
    setting: dict[str, Any]


class SpeedRounds(NamedTuple):
    """What contenders told over all rounds, by name.

    Attributes:
        ready: what each said after its warm-up.
        answers: of each, by round.
        failed: the last words of those that ended on the way; they are in neither of the others.
    """

    ready: dict[str, dict[str, Any]]
    answers: dict[str, list[dict[str, Any]]]
    failed: dict[str, str]

    def rates(self) -> dict[str, list[float]]:
        """Tokens per second by round."""
        return {name: [each["tokens"] / each["seconds"] for each in answers] for name, answers in self.answers.items()}

    def losses(self, name: str) -> list[float]:
        """Of a contender, in nats, from its first step on."""
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
