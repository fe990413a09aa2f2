"""Verdicts of a race, read from its runs alone by any process."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from types import MappingProxyType
from typing import Literal

from workbench.experiments.race.race_plan import Entry, RacePlan
from workbench.experiments.race.sequential import Estimate, Word, counts_p, more_seeds, word_of, word_of_counts
from workbench.experiments.race.speedup import SecondsToTarget, Speedup, seconds_to_target, speedup
from workbench.experiments.readings import Reading, cancelled, reading_of

Reason = Literal["", "too early", "floor", "failed", "cancelled"]


@dataclass(frozen=True)
class Verdict:
    """The verdict on one arm against the baseline, at the last look that all of its runs have reached.

    Attributes:
        verdict: better, worse, equivalent or undecided. reason: why no means are compared: ``too early`` for the first
            look, seeds on the ``floor`` (the verdict is then by their count), a run that ``failed``, a race that was
            ``cancelled`` before it had a verdict.
        estimate: of score of the arm minus score of the baseline, with its repeated interval; None without a look.
        more: seeds that would decide if mean and spread stayed; None where there is a verdict, or for more than 30.
        speedup: None where the baseline was trained at one budget alone.
        to_target: reference seconds until the baseline's final score; None where runs have left no curve.
        left_floor, baseline_left_floor: seeds that learned more than word frequencies, of so many that are done.
        reached_floor, baseline_reached_floor: seeds that learned word frequencies; counted where none learned more.
        counts_p: Boschloo's exact p of the counts, two-sided; None where means are compared.
        final: nothing more will be launched for this arm.
        error: of a run that failed.
    """

    arm: str
    verdict: Word = "undecided"
    reason: Reason = "too early"
    estimate: Estimate | None = None
    more: int | None = None
    speedup: Speedup | None = None
    to_target: SecondsToTarget | None = None
    left_floor: tuple[int, int] = (0, 0)
    baseline_left_floor: tuple[int, int] = (0, 0)
    reached_floor: tuple[int, int] = (0, 0)
    baseline_reached_floor: tuple[int, int] = (0, 0)
    counts_p: float | None = None
    final: bool = False
    error: str = ""

    @property
    def learned(self) -> bool:
        """True where any seed of the arm or of the baseline learned more than word frequencies."""
        return self.left_floor[0] + self.baseline_left_floor[0] > 0

    @property
    def unmeasured(self) -> bool:
        """True where there was nothing to compare: no seed learned, and as many reached word frequencies."""
        return self.reason == "floor" and self.verdict == "undecided" and not self.learned


@dataclass(frozen=True)
class RaceStatus:
    """A race as its runs tell.

    Attributes:
        readings: by entry. verdicts: by arm. look: seeds of the look that is waited for, or of the last one.
        wanted: entries that the look still needs, in the order in which they should start.
        over: nothing is left to do. failed: why there can be no verdict at all.
    """

    readings: dict[Entry, Reading]
    verdicts: dict[str, Verdict]
    look: int
    wanted: list[Entry] = field(default_factory=list)
    over: bool = False
    failed: str = ""

    @property
    def runs(self) -> list[tuple[Entry, Reading]]:
        """All entries with their readings."""
        return list(self.readings.items())

    @property
    def judged(self) -> int:
        """Seeds of the last look that all runs of an arm have reached; 0 before there is one."""
        return max(each.left_floor[1] for each in self.verdicts.values())

    def scores(self, plan: RacePlan, arm: str, seeds: Sequence[int], ratio: float = 1.0) -> list[float]:
        """Return the scores of an arm by seed, in the unit of the race; NaN where a run is not done."""
        found = [self.readings.get(Entry(arm, seed, ratio), Reading("missing")) for seed in seeds]
        return [each.scored(plan.score) for each in found]


def status_of(
    plan: RacePlan,
    refused: Mapping[str, str] = MappingProxyType({}),
    withdrawn: Collection[str] = (),
    *,
    ended: bool = False,
) -> RaceStatus:
    """Read how the race stands, look by look, as far as its runs have got.

    Args:
        refused: by run id, why it could not be launched.
        withdrawn: ids of runs that the race stopped, and that have not failed.
        ended: it was cancelled; what did not end by itself was stopped then, and has not failed.
    """
    readings = {
        entry: reading_of(plan.run_folder(entry), refused) for entry in plan.entries(len(plan.seeds), plan.others)
    }
    for entry, each in readings.items():
        if each.status != "done" and plan.run_id(entry) in withdrawn:
            readings[entry] = Reading("stopped", doing=each.doing, progress=each.progress)
    now = judged(plan, cancelled(readings) if ended else readings)
    return replace(now, verdicts={arm: _given_up(each) for arm, each in now.verdicts.items()}) if ended else now


def _given_up(verdict: Verdict) -> Verdict:
    """Return the verdict on an arm of a race that was cancelled."""
    return verdict if verdict.final or verdict.reason == "floor" else replace(verdict, reason="cancelled")


def judged(plan: RacePlan, readings: dict[Entry, Reading]) -> RaceStatus:
    """Judge the readings of all runs of a race."""
    verdicts = {arm: Verdict(arm) for arm in plan.others}
    for look in plan.design.looks:
        verdicts |= {arm: _failed(plan, readings, each) for arm, each in verdicts.items() if not each.final}
        open_arms = [arm for arm, each in verdicts.items() if not each.final]
        entries = plan.entries(look, open_arms)
        base = [readings[entry] for entry in entries if entry.arm == plan.baseline and entry.ratio == 1]
        broken = [each.error for each in base if each.status == "failed"]
        if broken:
            failed = f"the baseline failed, and nothing can be compared without it: {broken[0]}"
            closed = {arm: replace(each, reason="failed", final=True, error=failed) for arm, each in verdicts.items()
                      if not each.final}  # fmt: skip
            return RaceStatus(readings, verdicts | closed, look, over=True, failed=failed)
        wanted = [entry for entry in entries if readings[entry].status not in ("done", "failed")]
        if wanted and open_arms:
            return RaceStatus(readings, verdicts, look, wanted)
        verdicts |= {arm: _judged(plan, readings, arm, look) for arm in open_arms}
        if all(each.final for each in verdicts.values()):
            break
    return RaceStatus(readings, verdicts, look, over=True, failed=_all_failed(verdicts.values()))


def _all_failed(verdicts: Collection[Verdict]) -> str:
    """Return why there is no verdict at all; empty where an arm has one."""
    if not all(each.reason == "failed" for each in verdicts):
        return ""
    named = " and ".join(each.arm for each in verdicts)
    return f"{named} failed, so there is no verdict: {next(iter(verdicts)).error}"


def _failed(plan: RacePlan, readings: Mapping[Entry, Reading], verdict: Verdict) -> Verdict:
    """End the verdict where a run of the arm has failed."""
    errors = [each.error for entry, each in readings.items() if entry.arm == verdict.arm and each.status == "failed"]
    return replace(verdict, verdict="undecided", reason="failed", final=True, error=errors[0]) if errors else verdict


def _judged(plan: RacePlan, readings: Mapping[Entry, Reading], arm: str, look: int) -> Verdict:
    """Judge an arm by all runs of a look."""
    seeds, last = plan.seeds[:look], look == plan.design.looks[-1]

    def of(who: str, ratio: float = 1.0) -> list[Reading]:
        return [readings[Entry(who, seed, ratio)] for seed in seeds]

    def scores(found: list[Reading]) -> list[float]:
        return [each.scored(plan.score) for each in found]

    ours, base = of(arm), of(plan.baseline)
    left, base_left = (sum(each.left_floor for each in found) for found in (ours, base))
    reached, base_reached = (sum(each.reached_floor for each in found) for found in (ours, base))
    begun = Verdict(
        arm, left_floor=(left, look), baseline_left_floor=(base_left, look),
        reached_floor=(reached, look), baseline_reached_floor=(base_reached, look),
    )  # fmt: skip
    if left < look or base_left < look:
        # A mean over seeds of which some have learned and some have not describes neither.
        counts = (left, base_left) if begun.learned else (reached, base_reached)
        p = counts_p(*counts, look)
        word = word_of_counts(*counts, p, plan.design.alpha)
        return replace(begun, verdict=word, reason="floor", counts_p=p, final=True)
    differences = [a - b for a, b in zip(scores(ours), scores(base), strict=True)]
    found, margin = plan.design.estimate(differences), _margin(plan, base)
    critical = plan.design.critical[plan.design.looks.index(look)]
    word = word_of(found, margin)
    undecided = word == "undecided"
    budgets = {1.0: scores(base)} | {
        ratio: scores(of(plan.baseline, ratio))
        for ratio in plan.reference
        if all(each.status == "done" and each.left_floor for each in of(plan.baseline, ratio))
    }
    return replace(
        begun,
        verdict=word,
        reason="",
        estimate=found,
        more=more_seeds(found, critical, margin) if undecided and last else None,
        speedup=speedup(scores(ours), budgets, critical),
        to_target=_to_target(plan, arm, ours, scores(base), critical),
        final=not undecided or last,
    )


def _to_target(
    plan: RacePlan, arm: str, ours: Sequence[Reading], target_S: Sequence[float], critical: float
) -> SecondsToTarget | None:
    curves = [reading.curve(plan.score, plan.shares[arm]) for reading in ours]
    return seconds_to_target(curves, target_S, plan.shares[plan.baseline].seconds, critical) if all(curves) else None


def _margin(plan: RacePlan, base: Sequence[Reading]) -> float:
    """Return the margin in the unit of the score: nats per token are so many bits per byte of this text."""
    if plan.score == "nats":
        return plan.margin
    return plan.margin * fmean(each.bits_per_byte / each.loss for each in base)
