"""From a race's run folders to what its pictures and its table show."""

from __future__ import annotations

import math
from dataclasses import replace
from html import escape
from statistics import fmean

import numpy as np

from workbench.base.text import plain
from workbench.experiments.experiment_folder import ENDED
from workbench.experiments.race.plan import Entry, RacePlan
from workbench.experiments.race.sentences import budget_lines, progress, sentence
from workbench.experiments.race.status import Standing, run_folder
from workbench.experiments.race.tables import arms_html
from workbench.experiments.readings import Reading, curve_of, heldout_of
from workbench.experiments.shown import Pick, Shown
from workbench.experiments.words import UNITS
from workbench.plots.curves import Curve
from workbench.plots.race import Arm, Gap, RacePicture, Reach, race_curves, race_differences
from workbench.plots.race_tables import curves_table, differences_table
from workbench.store.folder import read_object
from workbench.store.trash import wherever
from workbench.telemetry.baselines import References
from workbench.telemetry.quantities import SECONDS_AHEAD

_CELL = "text-align:left;padding:2px 12px 2px 0"


def picture_of(plan: RacePlan, now: Standing) -> RacePicture:
    """Curves of runs at the race's own budget, over reference time, and differences as far as they are known.

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
            evaluations = read_object(wherever(run_folder(plan, entry)).evaluations)
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


def shown(plan: RacePlan, now: Standing, status: str, note: str = "") -> Shown:
    """One reading of a race, for a page that draws it live."""
    picture = picture_of(plan, now)
    figures = {"curves": "held-out loss by arm", "differences": "differences to the baseline"}
    draw = {"curves": race_curves, "differences": race_differences}
    numbers = {"curves": curves_table, "differences": differences_table}
    lines = [
        progress(plan, now, ended=status in ENDED),
        *([note] if note else []),
        *(sentence(plan, each) for each in now.verdicts.values()),
    ]
    return Shown(
        f"Race {plain(plan.name, 60)}", status, lines, table_html(plan, now) + arms_html(plan, now), figures,
        lambda key: draw[key](picture), lambda key: numbers[key](picture),
        [line.strip() for line in budget_lines(plan)], _picks(plan, now), going=now.going,
    )  # fmt: skip


def _picks(plan: RacePlan, now: Standing) -> list[Pick]:
    """Runs that have begun, arm by arm: whoever looks for one knows its arm."""
    begun = {entry: each for entry, each in now.readings.items() if each.status != "missing"}
    places = [plan.baseline, *plan.others]
    found = []
    for entry, each in sorted(begun.items(), key=lambda item: (places.index(item[0].arm), item[0].ratio != 1)):
        outcome = f": {each.scored(plan.score):.3f}" if each.status == "done" else f" ({each.status})"
        found.append(Pick(entry.title, f"{plain(entry.title, 60)}{outcome}", single=True))
    return found


def _reaches(plan: RacePlan, now: Standing) -> tuple[float | None, list[Reach]]:
    """The baseline's final loss, a mean over the seeds of the last look, and when other arms get there."""
    found = {name: verdict.to_target for name, verdict in now.verdicts.items() if verdict.to_target is not None}
    # Losses of arms with other tokenizers stand on no common line.
    if not found or plan.score != "nats":
        return None, []
    seeds = plan.seeds[: max(each.seeds for each in found.values())]
    reaches = [Reach(name, each.seconds, each.low, each.high) for name, each in found.items()
               if each.seconds is not None and each.low is not None and each.high is not None]  # fmt: skip
    return fmean(now.scores(plan, plan.baseline, seeds)), reaches


def table_html(plan: RacePlan, now: Standing) -> str:
    """The verdicts as a table without scripts, every name escaped."""
    head = ("arm", "verdict", f"difference ({UNITS[plan.score]}; below 0 is better)", "interval", "seeds",
            "where the baseline would be with", "time to the baseline's final score")  # fmt: skip
    rows = []
    for name, verdict in now.verdicts.items():
        found = verdict.estimate
        numbers = ("", "", "") if found is None else (
            f"{found.mean:+.3f}", f"{found.low:+.3f} to {found.high:+.3f}", str(found.seeds)
        )  # fmt: skip
        floor = "not below word frequencies" if verdict.verdict == "undecided" else "by the count of seeds that learned"
        reason = {"": "", "too early": " (too early)", "cancelled": " (cancelled)", "floor": f" ({floor})"}
        word = "none (failed)" if verdict.reason == "failed" else verdict.verdict + reason[verdict.reason]
        ratio = verdict.speedup.budget if verdict.speedup else ""
        rows.append((plain(name), word, *numbers, ratio,
                     verdict.to_target.against if verdict.to_target else ""))  # fmt: skip
    # Not as plots.static has it: titles wrap, or the Lab's pane would have to scroll sideways.
    cells = ["".join(f"<td style='{_CELL}'>{escape(text)}</td>" for text in row) for row in rows]
    titles = "".join(f"<th style='{_CELL}'>{escape(text)}</th>" for text in head)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _curve(evaluations: dict[str, object], plan: RacePlan, arm: str) -> Curve:
    points = curve_of(heldout_of(evaluations), plan.score, plan.shares[arm])
    x_N, y_N = np.array(points, dtype=np.float64).reshape(-1, 2).T
    return Curve(x_N, y_N)
