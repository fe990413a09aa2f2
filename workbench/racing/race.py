"""A race as any process holds it: an id and a folder. It is carried forward by a process of its own."""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Coroutine, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import RunError, RunFailed
from workbench.racing import advance
from workbench.racing.driver import start_driver
from workbench.racing.entering import Say, enter
from workbench.racing.plan import RacePlan, Score, version_here
from workbench.racing.race_folder import ENDED, RaceFolder, find_race, races_root
from workbench.racing.results import RaceResult, rows
from workbench.racing.sentences import cost_lines, summary
from workbench.racing.sequential import ALPHA, MARGIN_NATS
from workbench.racing.standing import Standing, Verdict, standing
from workbench.runs.coroutine import called_from_coroutine
from workbench.runs.folder import write_json
from workbench.runs.frame import frame
from workbench.runs.log import tail

if TYPE_CHECKING:
    import pandas

    from workbench.recipe import Recipe

VIEW = "workbench.ui.watch.race_view:RaceView"
"""What :meth:`Race.watch` shows but must not import: it stands above."""
MOST_DRIVERS = 5
"""Started by one who waits; that many ends without a word have a cause that the next would meet, too."""


class Race:
    """A race that this or any other process began.

    Args:
        race: its id, a unique beginning of it, or its folder.
        runs_dir: the runs folder, beside which races lie; else ``$WORKBENCH_RUNS``, else ``./runs``.

    Raises:
        RunError: no such race.

    Example:
        >>> race = Race("20260131-0815")  # doctest: +SKIP
        >>> print(race.summary)  # doctest: +SKIP
    """

    def __init__(self, race: str | Path | RaceFolder, runs_dir: str | Path | None = None) -> None:
        self.folder = race if isinstance(race, RaceFolder) else find_race(race, runs_dir)
        self._drivers = 0

    @property
    def id(self) -> str:
        """The race id."""
        return self.folder.id

    @property
    def plan(self) -> RacePlan:
        """What was asked."""
        return RacePlan.read(self.folder)

    @property
    def status(self) -> str:
        """``racing``, ``finished``, ``failed`` or ``cancelled``; ``interrupted`` where nobody drives it any more."""
        status = str(self.folder.read_state()["status"])
        return status if status in ENDED or self.folder.driven() else "interrupted"

    @property
    def message(self) -> str:
        """What it is doing, or why it ended."""
        return str(self.folder.read_state()["message"])

    @property
    def note(self) -> str:
        """What a reader of its numbers should know; empty where there is nothing."""
        begun, here = self.plan.version, version_here()
        if begun == here:
            return ""
        return f"begun by workbench {begun}, and this is {here}: runs of both may differ in more than the arms"

    @property
    def standing(self) -> Standing:
        """All that its runs say now."""
        return standing(self.plan, advance.refused(self.folder), cancelled=self.status == "cancelled")

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """By arm, at the last look that its runs have reached."""
        return self.standing.verdicts

    @property
    def result(self) -> RaceResult:
        """All of it, JSON-able."""
        return RaceResult.of(self.plan, self.standing, self.status, self.note)

    @property
    def summary(self) -> str:
        """How it stands, in plain words."""
        return summary(self.plan, self.standing, self.status, self.note)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row per run; see :func:`workbench.racing.results.rows`."""
        return rows(self.plan, self.standing)

    def frame(self) -> pandas.DataFrame:
        """:attr:`rows` as a pandas table.

        Raises:
            WorkbenchError: pandas is not installed.
        """
        return frame(self.rows)

    def resume(self) -> None:
        """See that somebody drives the race; nothing to do where it has ended."""
        if self.status == "interrupted":
            start_driver(self.folder, Path(self.plan.folder))

    def cancel(self) -> list[str]:
        """End the race and stop its runs, each with a checkpoint; returns their ids.

        Raises:
            RunError: it has ended.
        """
        return advance.cancel(self.folder)

    def wait(self, timeout: float | None = None, poll: float = 0.5) -> RaceResult | Coroutine[Any, Any, RaceResult]:
        """Wait for the race to end; returns its result. ``await race.wait()`` lets other callbacks run meanwhile.

        Being interrupted does not touch the race. A driver that was killed is started again.

        Args:
            timeout: at most this many seconds; None waits for ever. poll: seconds between two looks.

        Raises:
            RunFailed: the baseline failed, the race was cancelled, or its drivers end without a word.
            TimeoutError: it has not ended in time; it goes on.
        """
        if called_from_coroutine():
            return self.wait_async(timeout, poll)
        return self.wait_blocking(timeout, poll)

    def wait_blocking(self, timeout: float | None = None, poll: float = 0.5) -> RaceResult:
        """:meth:`wait` that always blocks, whoever calls it."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while not self.ended(deadline):
            time.sleep(poll)
        return self._outcome()

    async def wait_async(self, timeout: float | None = None, poll: float = 0.5) -> RaceResult:
        """:meth:`wait` that always has to be awaited."""
        import asyncio

        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while not self.ended(deadline):
            await asyncio.sleep(poll)
        return self._outcome()

    def ended(self, deadline: float = math.inf) -> bool:
        """Whether the race has ended; where nobody drives it, somebody does from now on.

        Args:
            deadline: of ``time.monotonic``.

        Raises:
            TimeoutError: the deadline has passed. RunFailed: drivers end without a word.
        """
        status = self.status
        if status in ENDED:
            return True
        if time.monotonic() >= deadline:
            raise TimeoutError(f"race '{self.id}' has not ended in time; it goes on ({self.message})")
        if status == "interrupted" and start_driver(self.folder, Path(self.plan.folder)):
            self._drivers += 1
            if self._drivers > MOST_DRIVERS:
                raise RunFailed(f"race '{self.id}': its drivers end without a word: {tail(self.folder.log, 5)}")
        return False

    def _outcome(self) -> RaceResult:
        found = self.result
        if found["status"] != "finished":
            raise RunFailed(f"race '{self.id}' {found['status']}: {found['error'] or self.message}")
        return found

    def watch(self) -> Any:
        """Show table and pictures in the present notebook cell, live where somebody looks, and return the view."""
        self.resume()
        module, _, name = VIEW.partition(":")
        return getattr(importlib.import_module(module), name)(self).show()

    def __repr__(self) -> str:
        return self.summary

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary)}</pre>"


def race(
    arms: Mapping[str, Recipe | str] | str,
    budget: str | None = None,
    seeds: int | Sequence[int] = 6,
    *,
    baseline: str | None = None,
    score: Score = "nats",
    reference: Sequence[float] = (0.5, 2.0),
    clock: str = "reference",
    margin: float = MARGIN_NATS,
    alpha: float = ALPHA,
    name: str | None = None,
    runs_dir: str | Path | None = None,
    rates: Any = None,
    dry_run: bool = False,
    say: Say | None = print,
) -> Race | RacePlan:
    """Race recipes against a baseline over paired seeds at equal budgets; says what it costs, and returns at once.

    Arms are judged after 4, 6 and 10 seeds (as far as ``seeds`` goes) by repeated confidence intervals that hold
    together (:mod:`workbench.racing.sequential`): better, worse, equivalent, or undecided. An arm that is decided
    trains no more seeds.

    Args:
        arms: recipes, names of presets, recipe files, or texts such as ``"fast:optimizer.lr=1e-3"``, by name; or all in
            one text, ``"baseline=fast mine=fast:optimizer.lr=1e-3"``.
        budget: of each run: ``"60 s"`` of reference time (what the forecast of this machine says that an arm's steps
            take), ``"600 steps"``, ``"1e6 tokens"`` or ``"2e15 flops"``; None for the time of the baseline's own.
        seeds: at most so many, from 0 on; or which ones.
        baseline: name of the arm that the others are held against; else the one called ``baseline``, else the first.
        score: ``nats`` per token, or ``bits_per_byte``, which compares tokenizers, too.
        reference: ratios of the budget at which the baseline is trained as well, so that a difference can be said as a
            speed-up; ``()`` for none.
        clock: ``measured`` gives every run its seconds by its own clock instead.
        margin: of equivalence, nats. alpha: of the whole race, shared by its arms.
        runs_dir: the runs folder; the race's own folder is ``races`` beside it.
        rates: of another machine, see :func:`workbench.forecast.forecast`.
        dry_run: start nothing, return the plan.
        say: called with lines about what is prepared, and what the race will take.

    Raises:
        RecipeError: fewer than two arms, unknown names, arms that cannot be compared, a budget that is too small, or a
            recipe that this machine cannot carry out. DataError: text that cannot be prepared. Nothing was launched.
        RunError: the race's folder cannot be written, or its driver not be started.

    Example:
        >>> race = wb.race({"baseline": "fast", "mine": "fast:depth=progressive_drop"}, "60 s")  # doctest: +SKIP
        >>> race.wait()["summary"]  # doctest: +SKIP
    """
    say = say or (lambda line: None)
    plan = enter(
        arms, budget, seeds, baseline=baseline, score=score, reference=reference, clock=clock, margin=margin,
        alpha=alpha, name=name, runs_dir=runs_dir, rates=rates, say=say,
    )  # fmt: skip
    for line in cost_lines(plan):
        say(line)
    if dry_run:
        return plan
    return begin(plan)


def begin(plan: RacePlan) -> Race:
    """Write a race's folder and start its driver.

    Raises:
        RunError: the folder cannot be written, or the driver not be started.
    """
    folder = RaceFolder(races_root(plan.runs_dir) / plan.id)
    try:
        folder.path.mkdir(parents=True)
        folder.write_state("racing", "starting")
        # Last: a folder without it is no race.
        write_json(folder.plan, plan.to_dict())
    except OSError as error:
        raise RunError(f"the race cannot be written to {folder.path}: {error}; free some space, or choose another "
                       "place with runs_dir (`--runs DIR`, $WORKBENCH_RUNS)") from None  # fmt: skip
    started = Race(folder)
    started.resume()
    return started
