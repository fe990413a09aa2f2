"""A race in plain words: what it will take, how it stands, what it says."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median

from workbench.base.text import many, plain
from workbench.experiments.budget import parse
from workbench.experiments.experiment_folder import ENDED
from workbench.experiments.race.plan import Entry, RacePlan
from workbench.experiments.race.sequential import MOST_MORE
from workbench.experiments.race.status import Standing, Verdict
from workbench.experiments.readings import underway
from workbench.experiments.turns import START_SECONDS
from workbench.experiments.words import IDLE, UNITS, duration, remaining
from workbench.telemetry.baselines import MARGIN_NATS as FLOOR_MARGIN

_TOO_EARLY = "too early to say"
LARGE = 3.0
"""Differences in units of their spread above which a race of so few seeds is said to find only very large ones."""


def cost_lines(plan: RacePlan) -> list[str]:
    """What the race will take, the budget of each arm, what its seeds can find, and what speaks against it."""
    cost, looks = plan.cost, plan.design.looks
    early = f"; {duration(cost.first_seconds)} if {looks[0]} seeds decide" if cost.first_runs < cost.runs else ""
    hours = f", {cost.core_hours:.2g} core hours" if cost.core_hours else ""
    lines = [
        f"{cost.runs} runs{_where_from(plan)}, {plan.at_once} at a time: about {duration(cost.seconds)} "
        f"{IDLE}{hours}{early}"
    ]
    lines += budget_lines(plan)
    if plan.initial:
        lines.append("  all arms begin with the weights of one checkpoint per seed, and with fresh optimizers")
    return [*lines, f"  {_findable(plan)}", *(f"  note: {line}" for line in plan.warnings)]


def budget_lines(plan: RacePlan) -> list[str]:
    """What the budget is for each arm, and whose seconds are meant."""
    lines = []
    for arm, share in plan.shares.items():
        whose = "  (baseline)" if arm == plan.baseline else ""
        own = share.unit == "seconds"
        took = f"about {many(share.steps, 'step')}" if own else many(share.steps, "step")
        time = f"{duration(share.seconds)} {'by its own clock' if own else 'of an idle machine'}"
        rest = f"{1000 * share.seconds_per_step:.3g} ms a step, {share.tokens:,} tokens"
        lines.append(f"  {plain(arm)}: {took} = {time} ({rest}){whose}")
    return lines


def _where_from(plan: RacePlan) -> str:
    """Of which runs a race consists."""
    arms, seeds = len(plan.arms), len(plan.seeds)
    own = f"{arms * seeds} of the {arms} arms on {seeds} seeds"
    if not plan.reference:
        return f" ({own})"
    ratios = " and ".join(f"{ratio:g}x" for ratio in plan.reference)
    return (f" ({own}; {len(plan.reference) * seeds} of {plain(plan.baseline)} at {ratios} of the budget, to say "
            "differences as a speed-up)")  # fmt: skip


def _findable(plan: RacePlan) -> str:
    """What differences the race can tell from chance."""
    *early, last = plan.design.looks
    size = plan.design.detectable
    if size > LARGE:
        return (f"judged after {last} seeds: only very large differences can be told from chance, about {size:.0f} "
                "times what they vary by from seed to seed; 6 seeds are usual")  # fmt: skip
    looks = f"{', '.join(map(str, early))} and {last}" if early else str(last)
    return (f"judged after {looks} seeds: differences of {size:.1f} times what they vary by from seed to seed are "
            "found in 4 of 5 such races")  # fmt: skip


def sentence(plan: RacePlan, verdict: Verdict) -> str:
    """One sentence about an arm."""
    arm, base = plain(verdict.arm), plain(plan.baseline)
    if verdict.reason == "failed":
        return f"{arm} has no verdict: {plain(verdict.error, 300)}"
    if verdict.reason == "floor":
        return _by_counts(verdict, arm, base)
    if verdict.estimate is None:
        early = "the race was cancelled before they could be judged" if verdict.reason == "cancelled" else _TOO_EARLY
        return f"{arm} against {base}: {early}"
    found, unit = verdict.estimate, UNITS[plan.score]
    # Equal steps, tokens or FLOPs are no equal time, which is what most races give.
    equal = "" if parse(plan.budget).unit == "seconds" else f" of {plain(plan.budget, 40)}"
    seeds = f"{found.seeds} seeds{equal}"
    # As how much better, or worse: nobody likes to read signs.
    ends = f"from {_leaning(found.low)} to {_leaning(found.high)}"
    if verdict.verdict == "equivalent":
        return (
            f"{arm} and {base} are equivalent after {seeds}. Its mean is {_leaning(found.mean, unit)} "
            f"({ends}){_budget(verdict, base)}"
        )
    if verdict.verdict == "undecided":
        return (
            f"{arm} against {base}: undecided after {seeds}. Its mean is {_leaning(found.mean, unit)} "
            f"({ends}){_budget(verdict, base)}{_more(verdict)}"
        )
    low, high = sorted((abs(found.low), abs(found.high)))
    return (
        f"{arm} is {verdict.verdict} than {base} by {abs(found.mean):.3f} {unit} ({low:.3f} to {high:.3f}; "
        f"{seeds}){_budget(verdict, base)}"
    )


def _by_counts(verdict: Verdict, arm: str, base: str) -> str:
    """Of an arm some of whose seeds, or of the baseline's, have learned no more than word frequencies."""
    decided = verdict.verdict != "undecided"
    counted, far = (verdict.left_floor, verdict.baseline_left_floor), f"got more than {FLOOR_MARGIN} nats below"
    if decided and not verdict.learned:
        counted, far = (verdict.reached_floor, verdict.baseline_reached_floor), "got as far as"
    counts = " and ".join(
        f"{count} of {seeds} seeds of {who}" for who, (count, seeds) in zip((arm, base), counted, strict=True)
    )
    told = f"{counts} {far} word frequencies"
    if decided:
        p = "" if verdict.counts_p is None else f" (p {verdict.counts_p:.2g} by Boschloo's exact test)"
        return (f"{arm} is {verdict.verdict} than {base} by the count of seeds that learned: {told}{p}, and means "
                f"are compared only where all get more than {FLOOR_MARGIN} nats below them")  # fmt: skip
    why = "so nothing was compared" if verdict.unmeasured else "and means are compared only where all do"
    advice = "; give it a larger budget" if verdict.baseline_left_floor[0] < verdict.baseline_left_floor[1] else ""
    return f"{arm} against {base}: undecided at this budget. {told}, {why}{advice}"


def brief_words(verdicts: Iterable[Verdict]) -> str:
    """The verdicts of all arms in a few words, those that are decided first.

    Example:
        >>> brief_words([Verdict("a", "undecided", ""), Verdict("b", "better", ""), Verdict("c", "undecided", "floor")])
        'b better; a, c undecided'
    """
    verdicts = list(verdicts)
    told: dict[str, list[str]] = {word: [] for word in ("better", "worse", "equivalent", "undecided")}
    for each in verdicts:
        early = {"too early": _TOO_EARLY, "cancelled": "cancelled"} if each.estimate is None else {}
        word = "failed" if each.reason == "failed" else early.get(each.reason, each.verdict)
        told.setdefault(word, []).append(plain(each.arm, 40))
    # The race is cancelled, no arm of it.
    given_up = told.pop("cancelled", [])
    said = [f"{', '.join(arms)} {word}" for word, arms in told.items() if arms]
    if any(each.reason == "cancelled" for each in verdicts):
        said.append(f"cancelled before {', '.join(given_up)} could be judged" if given_up else "cancelled")
    return "; ".join(said)


def _leaning(difference: float, unit: str = "") -> str:
    return " ".join(filter(None, (f"{abs(difference):.3f}", unit, "better" if difference < 0 else "worse")))


def _budget(verdict: Verdict, base: str) -> str:
    """What the score is worth; said of the baseline, whose runs had that budget: no time that this arm takes."""
    return "" if verdict.speedup is None else f", where {base} would be with {verdict.speedup.budget}"


def _more(verdict: Verdict) -> str:
    if verdict.reason == "cancelled":
        return "; it was cancelled before more seeds ran"
    if not verdict.final:
        return "; more seeds are on their way"
    if verdict.more is None:
        return f"; at this spread not even {MOST_MORE} more seeds would decide"
    return f"; about {many(verdict.more, 'more seed')} would decide if mean and spread stay"


def progress(plan: RacePlan, now: Standing, *, ended: bool = False) -> str:
    """How far the race is, in one line.

    Args:
        ended: nothing more will run, whatever is left to do.
    """
    counted = [each.status for each in now.readings.values()]
    # One that is judged once trains all of them.
    most = "at most " if len(plan.design.looks) > 1 else ""
    parts = [f"{counted.count('done')} of {most}{len(counted)} runs done", *underway(now.readings.values())]
    if stopped := counted.count("stopped"):
        parts.append(f"{stopped} stopped, as no verdict needs {'it' if stopped == 1 else 'them'} any more")
    done = ", ".join(parts)
    return done if ended and not now.over else f"{done}; {_next_verdict(plan, now)}"


def _next_verdict(plan: RacePlan, now: Standing) -> str:
    """After how many seeds the race says something."""
    if now.over:
        return f"judged on {now.judged} seeds" if now.judged else "nothing could be judged"
    first, last = plan.design.looks[0], plan.design.looks[-1]
    which = "only" if first == last else "first" if now.look == first else "last" if now.look == last else "next"
    # Not when: nobody knows what the queue puts before its runs.
    return f"{which} verdict after {now.look} seeds, about {remaining(_seconds_left(plan, now))} of training away"


def _seconds_left(plan: RacePlan, now: Standing) -> float:
    """Until the look that is waited for: the forecast of its runs, at the pace of those that are done."""

    def ahead(entry: Entry) -> float:
        return plan.shares[entry.arm].seconds * entry.ratio

    paces = [each.seconds / ahead(entry) for entry, each in now.readings.items() if math.isfinite(each.seconds)]
    pace = median(paces) if paces else 1.0
    # In quarters of a run: a page that says every step of the way is read out for ever.
    left = [(1 - round(4 * now.readings[entry].progress) / 4) * (pace * ahead(entry) + START_SECONDS)
            for entry in now.wanted]  # fmt: skip
    return max(sum(left) / plan.at_once, *left, 0.0)


def summary(plan: RacePlan, now: Standing, status: str, note: str = "") -> str:
    """All that a race says, one line each."""
    head = f"race {plan.id} ({plain(plan.name, 60)}) {status}: {progress(plan, now, ended=status in ENDED)}"
    return "\n".join([head, *([note] if note else []), *(sentence(plan, each) for each in now.verdicts.values())])
