"""A race in plain words: its cost, how it stands, its verdicts."""

from __future__ import annotations

import math
from dataclasses import asdict
from statistics import fmean, median
from typing import Any, ClassVar

from workbench.base.json_lines import finite
from workbench.base.text import UNKNOWN, count, decimal, many, plain
from workbench.experiments.budget import parse
from workbench.experiments.race.race_plan import Entry, RacePlan
from workbench.experiments.race.race_result import RaceResult
from workbench.experiments.race.sequential import MOST_MORE, SPREAD_NATS
from workbench.experiments.race.verdicts import RaceStatus, Verdict
from workbench.experiments.snapshot import Pick, Snapshot, wrapped_table
from workbench.experiments.validation import START_SECONDS
from workbench.experiments.words import UNITS, cost_line, duration, remaining, underway
from workbench.telemetry.baselines import MARGIN_NATS as FLOOR_MARGIN
from workbench.telemetry.quantities import SECONDS_AHEAD, SECONDS_TRAINED

END = "the baseline's final score"
_BUDGET_WORDS = {"seconds": "time", "flops": "FLOPs"}


def cost_lines(plan: RacePlan) -> list[str]:
    """Return what the race takes, the budget of each arm, what its seeds detect, and warnings."""
    cost, looks, arms, seeds = plan.cost, plan.design.looks, len(plan.arms), len(plan.seeds)
    early = f"; {duration(cost.first_seconds)} if {looks[0]} seeds decide" if cost.first_runs < cost.runs else ""
    ratios = " and ".join(f"{ratio:g}x" for ratio in plan.reference)
    other = f"; {len(plan.reference) * seeds} of {plain(plan.baseline)} at {ratios} of the budget, for the speed-up"
    runs = f"{cost.runs} runs ({arms * seeds} of the {arms} arms on {seeds} seeds{other if plan.reference else ''})"
    lines = [cost_line(runs, cost, plan.at_once, early), *budget_lines(plan)]
    if plan.initial:
        lines.append("  all arms begin with the weights of one checkpoint per seed, and with fresh optimizers")
    return [*lines, f"  {detectable(plan)}", *(f"  note: {line}" for line in plan.warnings)]


def budget_lines(plan: RacePlan) -> list[str]:
    """Return the budget of each arm in steps, time and tokens."""
    lines = []
    for arm, share in plan.shares.items():
        own = share.unit == "seconds"
        took = f"about {many(share.steps, 'step')}" if own else many(share.steps, "step")
        time = f"{duration(share.seconds)} {'by its own clock' if own else 'forecast'}"
        rest = f"{1000 * share.seconds_per_step:.3g} ms a step, {share.tokens:,} tokens"
        lines.append(f"  {plain(arm)}: {took} = {time} ({rest}){'  (baseline)' * (arm == plan.baseline)}")
    return lines


def detectable(plan: RacePlan) -> str:
    """Return the difference that the race detects, in a sentence."""
    size, seeds = plan.design.detectable, len(plan.seeds)
    shown = f"{size * SPREAD_NATS:.2g} nats" if plan.score == "nats" else f"{size:.1f} standard deviations"
    supposed = f"; supposes that the difference varies by {SPREAD_NATS} nats from seed to seed"
    usual = supposed if plan.score == "nats" else ""
    return f"With {seeds} seeds this race detects differences of {shown} or more (80% power{usual})."


def sentence(plan: RacePlan, verdict: Verdict) -> str:
    """Return the verdict on an arm in a few sentences."""
    arm, base = plain(verdict.arm), plain(plan.baseline)
    if verdict.reason == "failed":
        return f"{arm} has no verdict: {plain(verdict.error, 300)}"
    if verdict.reason == "floor":
        return _by_counts(verdict, arm, base)
    if verdict.estimate is None:
        early = "the race was cancelled before they could be judged" if verdict.reason == "cancelled" else _TOO_EARLY
        return f"{arm} against {base}: {early}"
    found, unit = verdict.estimate, UNITS[plan.score]
    seeds, difference = many(found.seeds, "seed"), _leaning(found.mean, unit)
    ends = f"{_leaning(found.low)} to {_leaning(found.high)}; {seeds}"
    if verdict.verdict == "equivalent":
        said = f"{arm} and {base} are equivalent: {difference} ({ends})."
    elif verdict.verdict == "undecided":
        said = f"{arm} against {base}: {difference} ({ends})."
    else:
        low, high = sorted((abs(found.low), abs(found.high)))
        by = f"{abs(found.mean):.3f} {unit} ({low:.3f} to {high:.3f}; {seeds})"
        said = f"{arm} is {verdict.verdict} than {base} by {by}."
    what = parse(plan.budget).unit
    ratio = verdict.speedup.words(_BUDGET_WORDS.get(what, what)) if verdict.speedup else ""
    as_far = f"To get as far, {base} needs {ratio}." if ratio else ""
    return " ".join(filter(None, (said, as_far, _more(verdict) if verdict.verdict == "undecided" else "")))


_TOO_EARLY = "too early to say"


def _by_counts(verdict: Verdict, arm: str, base: str) -> str:
    """Return the verdict by the count of seeds that learned more than word frequencies, where not all did."""
    decided = verdict.verdict != "undecided"
    counted, far = (verdict.left_floor, verdict.baseline_left_floor), f"got more than {FLOOR_MARGIN} nats below"
    if decided and not verdict.learned:
        counted, far = (verdict.reached_floor, verdict.baseline_reached_floor), "got as far as"
    (mine, seeds), (others, _) = counted
    counts = f"{mine} of {seeds} seeds of {arm} and {others} of {seeds} seeds of {base}"
    told = f"{counts} {far} word frequencies"
    if decided:
        return (f"{arm} is {verdict.verdict} than {base} by the count of seeds that learned: {told} (p "
                f"{verdict.counts_p or 0:.2g}, Boschloo's exact test).")  # fmt: skip
    why = "nothing was compared" if verdict.unmeasured else "means are compared only where all do"
    advice = " Give it a larger budget." if verdict.baseline_left_floor[0] < verdict.baseline_left_floor[1] else ""
    return f"{arm} against {base}: undecided. {told}: {why}.{advice}"


def _leaning(difference: float, unit: str = "") -> str:
    # As how much better, or worse: nobody likes to read signs.
    return " ".join(filter(None, (f"{abs(difference):.3f}", unit, "better" if difference < 0 else "worse")))


def _more(verdict: Verdict) -> str:
    if verdict.reason == "cancelled":
        return "Undecided: the race was cancelled."
    if not verdict.final:
        return "Undecided: more seeds are training."
    more = f"more than {MOST_MORE}" if verdict.more is None else f"about {verdict.more}"
    return f"Undecided: {more} more {'seed' if verdict.more == 1 else 'seeds'}."


class RaceSnapshot(Snapshot[RacePlan, RaceStatus]):
    """A race at one moment."""

    noun: ClassVar[str] = "race"
    kind_of_result = RaceResult
    drawn_by = "workbench.experiments.race.race_pictures"

    @property
    def progress(self) -> str:
        """Its progress in one line."""
        plan, now = self.plan, self.now
        counted = [each.status for each in now.readings.values()]
        # One that is judged once trains all of them.
        most = "at most " if len(plan.design.looks) > 1 else ""
        parts = [f"{counted.count('done')} of {most}{len(counted)} runs done", *underway(now.readings.values())]
        if stopped := counted.count("stopped"):
            parts.append(f"{stopped} stopped (not needed any more)")
        done = ", ".join(parts)
        if now.over:
            return f"{done}; {f'judged on {now.judged} seeds' if now.judged else 'nothing could be judged'}"
        # Not when: nobody knows what the queue puts before its runs.
        ahead = f"next verdict after {now.look} seeds, about {remaining(self._seconds_left())} of training away"
        return done if self.ended else f"{done}; {ahead}"

    def _seconds_left(self) -> float:
        """Return the forecast of the runs until the next look, at the pace of those that are done."""
        plan, readings = self.plan, self.now.readings

        def ahead(entry: Entry) -> float:
            return plan.shares[entry.arm].seconds * entry.ratio

        paces = [each.seconds / ahead(entry) for entry, each in readings.items() if math.isfinite(each.seconds)]
        pace = median(paces) if paces else 1.0
        # In quarters of a run: a page that says every step of the way is read out for ever.
        left = [(1 - round(4 * readings[entry].progress) / 4) * (pace * ahead(entry) + START_SECONDS)
                for entry in self.now.wanted]  # fmt: skip
        return max(sum(left) / plan.at_once, *left, 0.0)

    @property
    def said(self) -> list[str]:
        """One line per arm."""
        return [sentence(self.plan, each) for each in self.now.verdicts.values()]

    @property
    def more(self) -> list[str]:
        """The budgets of its arms."""
        return budget_lines(self.plan)

    @property
    def brief(self) -> str:
        """Its verdicts in a few words: ``a, b better; c undecided``."""
        told: dict[str, list[str]] = {word: [] for word in ("better", "worse", "equivalent", "undecided")}
        cancelled = any(each.reason == "cancelled" for each in self.now.verdicts.values())
        for each in self.now.verdicts.values():
            word: str = "failed" if each.reason == "failed" else each.verdict
            if each.estimate is None and each.reason in ("too early", "cancelled"):
                word = "not judged" if cancelled else _TOO_EARLY
            told.setdefault(word, []).append(plain(each.arm, 40))
        said = [f"{', '.join(arms)} {word}" for word, arms in told.items() if arms]
        return "; ".join([*(["cancelled"] if cancelled else []), *said])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row per run: ``arm, seed, ratio, run, status, heldout_loss, bits_per_byte, left_floor, seconds`` (of
        training) and ``difference`` (to the baseline at this seed, in the unit of the score), None where unknown."""
        plan, now, found = self.plan, self.now, []
        for entry, reading in now.readings.items():
            if reading.status == "missing":
                continue
            pair = [now.scores(plan, arm, [entry.seed], entry.ratio)[0] for arm in (entry.arm, plan.baseline)]
            paired = entry.arm != plan.baseline
            found.append({
                **entry._asdict(), "run": plan.run_id(entry), "status": reading.status,
                "heldout_loss": finite(reading.loss), "bits_per_byte": finite(reading.bits_per_byte),
                "left_floor": reading.left_floor if reading.status == "done" else None,
                "seconds": finite(reading.seconds), "difference": finite(pair[0] - pair[1]) if paired else None,
            })  # fmt: skip
        return found

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return the arms, the baseline first: what each was given, took and reached at the race's own budget.

        The first time is that of the plan, the second the median of the runs, which share the machine.
        """
        plan, now = self.plan, self.now
        planned = f"{SECONDS_TRAINED}, planned" if self._own_clock else SECONDS_AHEAD
        titles = ["arm", "steps", "tokens", "TFLOP", planned, SECONDS_TRAINED, f"held-out ({UNITS[plan.score]})",
                  "seeds", f"steps to {END}", self._time_to_end]  # fmt: skip
        lines = []
        for arm in (plan.baseline, *plan.others):
            share = plan.shares[arm]
            known = ((now.readings.get(Entry(arm, seed)), now.scores(plan, arm, [seed])[0]) for seed in plan.seeds)
            done = [(reading.seconds, score) for reading, score in known if reading and reading.status == "done"]
            seconds, scores = zip(*done, strict=True) if done else ((), ())
            lines.append([
                plain(arm), f"{share.steps:,}", count(share.tokens), f"{share.flops / 1e12:.3g}",
                f"{share.seconds:.1f}", decimal(median(seconds) if done else None, 1),
                decimal(fmean(scores) if done else None, 3), str(len(done)),
                *(self._to_target(arm) if done else (UNKNOWN, UNKNOWN)),
            ])  # fmt: skip
        return titles, lines

    @property
    def _own_clock(self) -> bool:
        return self.plan.shares[self.plan.baseline].unit == "seconds"

    @property
    def _time_to_end(self) -> str:
        return f"time to {END}{'' if self._own_clock else ', forecast'}"

    def _to_target(self, arm: str) -> tuple[str, str]:
        share = self.plan.shares[arm]
        if arm == self.plan.baseline:
            return f"{share.steps:,}", f"{share.seconds:.1f} s"
        verdict = self.now.verdicts[arm]
        if (found := verdict.to_target) is None:
            return UNKNOWN, "not compared" if verdict.reason == "floor" else UNKNOWN
        if found.seconds is None:
            return UNKNOWN, found.text
        return f"{found.seconds / share.seconds_per_step:,.0f}", found.text

    def verdict_table(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of text: one row per arm beside the baseline."""
        unit = UNITS[self.plan.score]
        titles = ["arm", "verdict", f"difference ({unit}; below 0 is better)", "interval", "seeds", "speed-up",
                  self._time_to_end]  # fmt: skip
        reasons = {"": "", "too early": " (too early)", "cancelled": " (cancelled)", "floor": " (by count of seeds)"}
        lines = []
        for name, verdict in self.now.verdicts.items():
            found = verdict.estimate
            numbers = ("", "", "") if found is None else (
                f"{found.mean:+.3f}", f"{found.low:+.3f} to {found.high:+.3f}", str(found.seeds)
            )  # fmt: skip
            word = "none (failed)" if verdict.reason == "failed" else verdict.verdict + reasons[verdict.reason]
            lines.append([plain(name), word, *numbers, verdict.speedup.text if verdict.speedup else "",
                          verdict.to_target.text if verdict.to_target else ""])  # fmt: skip
        return titles, lines

    def table_html(self) -> str:
        """Return verdicts and arms as two tables without scripts."""

        return wrapped_table(*self.verdict_table()) + wrapped_table(*self.table())

    @property
    def picks(self) -> list[Pick]:
        """Runs that have begun, arm by arm."""
        plan, places = self.plan, [self.plan.baseline, *self.plan.others]
        begun = [item for item in self.now.readings.items() if item[1].status != "missing"]
        found = []
        for entry, each in sorted(begun, key=lambda item: (places.index(item[0].arm), item[0].ratio != 1)):
            outcome = f": {each.scored(plan.score):.3f}" if each.status == "done" else f" ({each.status})"
            found.append(Pick(entry.title, f"{plain(entry.title, 60)}{outcome}", single=True))
        return found

    def facts(self) -> dict[str, Any]:
        """Return the keys of its result, see :class:`RaceResult`."""
        plan, verdicts = self.plan, list(self.now.verdicts.values())
        first = self.verdict_json(verdicts[0])
        found, ratio = verdicts[0].estimate, verdicts[0].speedup
        return {
            "verdict": first["verdict"],
            "difference": found.mean if found else None,
            "interval": [found.low, found.high] if found else None,
            "p": found.p if found else verdicts[0].counts_p,
            "speedup": ratio and {"text": ratio.text, "factor": ratio.factor, "low": ratio.low, "high": ratio.high},
            "to_target": first["to_target"],
            "budget": plan.budget, "clock": plan.clock, "looks": plan.design.looks,
            "alpha": plan.design.alpha * len(plan.others), "margin": plan.margin, "baseline": plan.baseline,
            "arms": {arm: {"recipe": plan.arms[arm], "share": asdict(plan.shares[arm])} for arm in plan.arms},
            "verdicts": [self.verdict_json(each) for each in verdicts],
            "runs": self.rows, "trained_on": self.trained_on(), "cost": asdict(plan.cost),
        }  # fmt: skip

    def verdict_json(self, verdict: Verdict) -> dict[str, Any]:
        """Return a verdict with its sentence, JSON-able; None for the word of an arm that failed."""
        found = verdict.estimate
        ratio, target = ({**asdict(each), "text": each.text} if each else None
                         for each in (verdict.speedup, verdict.to_target))  # fmt: skip
        word = None if verdict.reason == "failed" else verdict.verdict
        return {
            **asdict(verdict), "verdict": word, "estimate": found._asdict() if found else None, "speedup": ratio,
            "to_target": target, "unmeasured": verdict.unmeasured, "sentence": sentence(self.plan, verdict),
        }  # fmt: skip
