"""The pictures and the report's sections of a race."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from html import escape
from statistics import fmean

import numpy as np

from workbench.base.fields import differences, flatten
from workbench.base.text import plain
from workbench.experiments.race.race_plan import Entry, RacePlan
from workbench.experiments.race.race_words import RaceSnapshot, budget_lines
from workbench.experiments.race.verdicts import RaceStatus
from workbench.experiments.readings import Reading, curve_of, heldout_of
from workbench.experiments.snapshot import Drawing, wrapped_table
from workbench.experiments.words import UNITS
from workbench.plots.curves import Curve
from workbench.plots.race import Arm, Gap, RacePicture, Reach, race_curves, race_differences, race_png
from workbench.plots.race_tables import curves_table, differences_table
from workbench.plots.tables import choices_table, table
from workbench.store.evaluations import read_evaluations
from workbench.store.trash import wherever
from workbench.telemetry.baselines import References
from workbench.telemetry.quantities import SECONDS_AHEAD

_MEAN = " Diamond: their mean with its interval."


def drawings(seen: RaceSnapshot) -> dict[str, Drawing]:
    """Return the pictures of a race by key."""
    picture = picture_of(seen.plan, seen.now)
    # Where seeds are on the floor, or the first look is still ahead, there is no mean to explain.
    mean = _MEAN if any(gap.mean is not None for gap in picture.gaps) else ""
    return {
        "curves": Drawing(
            "held-out loss by arm", partial(race_curves, picture), partial(curves_table, picture),
            "Mean of the seeds that are done; the band reaches from the best seed to the worst.",
        ),
        "differences": Drawing(
            "differences to the baseline", partial(race_differences, picture), partial(differences_table, picture),
            f"Faint: single seeds, each against the baseline's run of that seed.{mean} Within the grey stripe two arms "
            "are called equivalent.",
        ),
    }  # fmt: skip


def png(seen: RaceSnapshot) -> bytes:
    """Draw both pictures without a browser."""
    return race_png(picture_of(seen.plan, seen.now))


def sections(seen: RaceSnapshot) -> dict[str, str]:
    """Return the report's sections before the pictures, by title, as HTML."""
    plan = seen.plan
    budget = "<br>".join(escape(line.strip()) for line in budget_lines(plan))
    return {
        "Verdicts": wrapped_table(*seen.verdict_table()),
        "Arms": f"<p>Each run at the budget of {escape(plan.budget)}. {budget}</p>{wrapped_table(*seen.table())}",
        "Knobs that differ": _knobs_html(plan),
    }


def recipe_section(seen: RaceSnapshot) -> dict[str, str]:
    """Return the report's last section."""
    plan = seen.plan
    return {f"Recipe of {plain(plan.baseline)}": choices_table(plan.arms[plan.baseline])}


def _knobs_html(plan: RacePlan) -> str:
    names = [plan.baseline, *plan.others]
    flat = [flatten({**plan.arms[arm], "name": "", "notes": ""}) for arm in names]
    rows = [(path, ["-" if value is None else plain(value, 80) for value in values])
            for path, values in differences(flat).items()]  # fmt: skip
    return table([plain(name) for name in names], rows) if rows else "<p>None.</p>"


def picture_of(plan: RacePlan, now: RaceStatus) -> RacePicture:
    """Return curves of runs at the race's own budget over reference time, and the differences that are known.

    Of an arm, the runs that are done; before there is one, the run that has got furthest.

    All in the unit of the race; floors stand beside losses in nats alone, since each tokenizer has its own.
    """
    arms: list[Arm] = []
    levels: dict[str, float] = {}
    for arm in plan.arms:
        ended: list[Curve] = []
        ends: list[Curve] = []
        open_lines: list[Curve] = []
        for seed in plan.seeds:
            entry = Entry(arm, seed)
            evaluations = read_evaluations(wherever(plan.run_folder(entry)))
            if plan.score == "nats":
                levels = levels or References.of(evaluations, {}, causal=False).levels
            if len(line := _curve(evaluations, plan, arm)):
                reading = now.readings.get(entry, Reading("missing"))
                done = reading.status == "done"
                # What has diverged at the end has no score of all held-out tokens.
                count = len(line) - (done and math.isfinite(reading.loss))
                (ended if done else open_lines).append(line[:count])
                ends += [line[count:]] * (count < len(line))
        # A seed that has just begun would cut the mean off where that seed stands.
        arms.append(Arm(arm, ended or sorted(open_lines, key=lambda line: -float(line.x_N[-1]))[:1], ends))
    arms.sort(key=lambda arm: arm.name != plan.baseline)
    floors = {text: level for text, level in levels.items() if text in ("word frequencies", "neighbours")}
    gaps = []
    for name, verdict in now.verdicts.items():
        ours_S, base_S = (now.scores(plan, arm, plan.seeds) for arm in (name, plan.baseline))
        found = {seed: ours - base for seed, ours, base in zip(plan.seeds, ours_S, base_S, strict=True)}
        known = {seed: gap for seed, gap in found.items() if math.isfinite(gap)}
        runs = [Entry(name, seed).title for seed in known]
        gap = Gap(name, [*known.values()], seeds=[*known], runs=runs)
        if (estimate := verdict.estimate) is not None:
            gap = replace(gap, mean=estimate.mean, low=estimate.low, high=estimate.high, text=verdict.verdict)
        gaps.append(gap)
    return RacePicture(
        UNITS[plan.score], SECONDS_AHEAD, arms, gaps, plan.margin, floors,
        *_reaches(plan, now),
    )  # fmt: skip


def _reaches(plan: RacePlan, now: RaceStatus) -> tuple[float | None, list[Reach]]:
    """Return the baseline's final loss, a mean over the seeds of the last look, and when other arms get there."""
    found = {name: verdict.to_target for name, verdict in now.verdicts.items() if verdict.to_target is not None}
    # Losses of arms with other tokenizers stand on no common line.
    if not found or plan.score != "nats":
        return None, []
    seeds = plan.seeds[: max(each.seeds for each in found.values())]
    reaches = [Reach(name, each.seconds, each.low, each.high) for name, each in found.items()
               if each.seconds is not None and each.low is not None and each.high is not None]  # fmt: skip
    return fmean(now.scores(plan, plan.baseline, seeds)), reaches


def _curve(evaluations: dict[str, object], plan: RacePlan, arm: str) -> Curve:
    points = curve_of(heldout_of(evaluations), plan.score, plan.shares[arm])
    x_N, y_N = np.array(points, dtype=np.float64).reshape(-1, 2).T
    return Curve(x_N, y_N)
