"""Let rivals take turns, and compare their rounds: speeds, losses, and the factors along a chain.

All live at once, but only one works at a time, in blocks A B B A: a busy moment and a drift of the machine hit all.
"""

from __future__ import annotations

import itertools
import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, TypeVar

from workbench.base.errors import WorkbenchError
from workbench.bench.contender import Contender, note
from workbench.bench.result import spread

Reading = TypeVar("Reading")
AT_ONCE = 6
"""Contenders alive at the same time; each holds a model, its graphs and a copy of torch, about 0.7 GiB."""


def alternate(
    rivals: Mapping[str, Callable[[], Reading]], rounds: int, failed: dict[str, str] | None = None, told: bool = False
) -> dict[str, list[Reading]]:
    """Take a reading of every rival in every round; first and last change places from round to round.

    Args:
        rivals: by name, how one is measured once.
        failed: gets the last words of those that end with a RuntimeError, and the others go on; None raises it.
        told: says on stderr when a round is over.

    Returns:
        by name the readings by round, without those that failed.
    """
    readings: dict[str, list[Reading]] = {name: [] for name in rivals}
    for number in range(rounds):
        for name in [*readings] if number % 2 == 0 else [*readings][::-1]:
            try:
                readings[name].append(rivals[name]())
            except RuntimeError as error:
                _lost(name, error, failed)
                del readings[name]
        if told:
            note(f"round {number + 1} of {rounds}")
    return readings


def _lost(name: str, error: RuntimeError, failed: dict[str, str] | None) -> None:
    if failed is None:
        raise error
    failed[name] = str(error).splitlines()[-1]
    note(f"{name} cannot run here: {failed[name]}")


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
        load: of the machine when they began.
    """

    ready: dict[str, dict[str, Any]]
    answers: dict[str, list[dict[str, Any]]]
    failed: dict[str, str]
    load: float = 0.0

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
    entrants: Mapping[str, Entrant], *, rounds: int, steps: int, warmup: int | None = None, all_needed: bool = True
) -> SpeedRounds:
    """Start all, one after the other, and let them take turns.

    Args:
        rounds: in which each takes ``steps`` steps.
        warmup: steps before, in which compilation happens and memory is watched; None times every step by itself.
        all_needed: False goes on without those that end on the way.

    Raises:
        RuntimeError: a contender ended.
    """
    more = {} if warmup is None else {"warmup": warmup, "memory": True}
    failed: dict[str, str] = {}
    load, losses = round(os.getloadavg()[0], 2), None if all_needed else failed
    with ExitStack() as stack:
        stage: dict[str, Contender] = {}
        for name, (module, setting) in entrants.items():
            note(f"starting {name} (warm-up and compilation)")
            try:
                each = stack.enter_context(Contender(module, {**setting, "name": name, **more}))
                # One by one: warm-ups side by side would take each other's time.
                assert each.ready is not None
                stage[name] = each
            except RuntimeError as error:
                _lost(name, error, losses)
        rivals = {name: lambda each=each: each.ask({"steps": steps}) for name, each in stage.items()}
        answers = alternate(rivals, rounds, losses, told=True)
        return SpeedRounds({name: stage[name].ready for name in answers}, answers, failed, load)


def beside(baseline: str, entrants: Mapping[str, Entrant], **how: Any) -> Iterator[SpeedRounds]:
    """Let a few entrants at a time take turns, each time with the baseline among them.

    Args:
        baseline: one of the entrants.
        how: as of :func:`take_rounds`.

    Raises:
        WorkbenchError: the baseline ended.
    """
    names = [name for name in entrants if name != baseline]
    for first in range(0, max(1, len(names)), AT_ONCE - 1):
        group = [baseline, *names[first : first + AT_ONCE - 1]]
        held = take_rounds({name: entrants[name] for name in group}, all_needed=False, **how)
        if baseline in held.failed:
            raise WorkbenchError(f"'{baseline}' cannot run this recipe here: {held.failed[baseline]}")
        yield held


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """Return the spread of the quotients by round: a slow minute hits both, and cancels."""
    return spread([a / b for a, b in zip(ours, theirs, strict=True)])


def waterfall(readings: Mapping[str, Sequence[float]], chain: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the factors along a chain.

    Args:
        readings: by contender, one number per round; all of the same rounds.
        chain: (what is new, name of the contender), the starting point first.

    Returns:
        ``start``, ``whole``, and ``steps`` of ``{"what", "contender", "factor", "min", "max", "so_far"}``. A factor is
        the quotient of two medians, so their product is ``whole``; least and greatest are of the quotients by round.
    """
    medians = {name: statistics.median(readings[name]) for _, name in chain}
    start = chain[0][1]
    steps = [
        {
            "what": what, "contender": name, "factor": medians[name] / medians[before],
            "min": paired["min"], "max": paired["max"], "so_far": medians[name] / medians[start],
        }
        for (_, before), (what, name) in itertools.pairwise(chain)
        for paired in (ratios(readings[name], readings[before]),)
    ]  # fmt: skip
    return {"start": start, "whole": medians[chain[-1][1]] / medians[start], "steps": steps}
