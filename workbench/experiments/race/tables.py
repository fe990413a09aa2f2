"""The arms of a race as a table: what each of them was given, took and reached."""

from __future__ import annotations

from statistics import fmean, median

from workbench.base.text import UNKNOWN, aligned, count, decimal, plain
from workbench.experiments.race.plan import Entry, RacePlan
from workbench.experiments.race.status import Standing
from workbench.experiments.words import UNITS
from workbench.plots.tables import table
from workbench.telemetry.quantities import SECONDS_AHEAD, SECONDS_TRAINED

END = "the baseline's final score"


def arms(plan: RacePlan, now: Standing) -> tuple[list[str], list[list[str]]]:
    """Titles and rows of text, the baseline first; of the runs at the race's own budget.

    The first time is that of the plan (forecast, unless the budget counts it), the second the median of the runs, which
    share the machine with each other and with everything else. When an arm has the score that the baseline ends with:
    see :mod:`workbench.experiments.race.target`.
    """
    planned = f"{SECONDS_TRAINED}, planned" if plan.shares[plan.baseline].unit == "seconds" else SECONDS_AHEAD
    titles = ["arm", "steps", "tokens", "TFLOP", planned, SECONDS_TRAINED, f"held-out ({UNITS[plan.score]})",
              "seeds", f"steps to {END}", f"time to {END}"]  # fmt: skip
    lines = []
    for arm in (plan.baseline, *plan.others):
        share = plan.shares[arm]
        known = ((now.readings.get(Entry(arm, seed)), now.scores(plan, arm, [seed])[0]) for seed in plan.seeds)
        done = [(reading.seconds, score) for reading, score in known if reading and reading.status == "done"]
        seconds, scores = zip(*done, strict=True) if done else ((), ())
        lines.append([
            plain(arm), f"{share.steps:,}", count(share.tokens), f"{share.flops / 1e12:.3g}", f"{share.seconds:.1f}",
            decimal(median(seconds) if done else None, 1), decimal(fmean(scores) if done else None, 3), str(len(done)),
            *(_to_target(plan, now, arm) if done else (UNKNOWN, UNKNOWN)),
        ])  # fmt: skip
    return titles, lines


def _to_target(plan: RacePlan, now: Standing, arm: str) -> tuple[str, str]:
    share = plan.shares[arm]
    if arm == plan.baseline:
        return f"{share.steps:,}", f"{share.seconds:.1f} s"
    verdict = now.verdicts[arm]
    if (found := verdict.to_target) is None:
        return UNKNOWN, "not compared" if verdict.reason == "floor" else UNKNOWN
    if found.seconds is None:
        return UNKNOWN, found.text
    return f"{found.seconds / share.seconds_per_step:,.0f}", found.text


def arms_html(plan: RacePlan, now: Standing) -> str:
    """:func:`arms` without scripts, every name escaped."""
    (_, *titles), lines = arms(plan, now)
    return table(titles, [(name, cells) for name, *cells in lines])


def arms_text(plan: RacePlan, now: Standing) -> str:
    """:func:`arms` for terminals."""
    titles, lines = arms(plan, now)
    return aligned([titles, *lines])
