"""A tuning in plain words: the division of its budget, what was kept and why, and what that is worth."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any, ClassVar

from workbench.base.fields import as_typed
from workbench.base.json_lines import finite
from workbench.base.text import decimal, plain
from workbench.experiments.race.race_words import sentence
from workbench.experiments.snapshot import Pick, Snapshot
from workbench.experiments.sweep.space import short
from workbench.experiments.sweep.stepwise import Step
from workbench.experiments.sweep.sweep_plan import SweepPlan
from workbench.experiments.tune.tuning_plan import TUNED, TuningPlan, first_round
from workbench.experiments.tune.tuning_result import TuningResult
from workbench.experiments.tune.tuning_status import TuningStatus
from workbench.experiments.words import UNITS, duration
from workbench.plots.forecast_facts import MEASURED_SPEED
from workbench.telemetry.baselines import MARGIN_NATS

TRIED = "what was tried:"
_MOST_VALUES = 8
"""Values of a knob in one line."""
_MORE_TIME = "give each run more time (each=..., `--each`)"
_WAITING = "waiting for the process that picks the settings: it takes some seconds to load"


def cost_lines(plan: TuningPlan, sweep: SweepPlan) -> list[str]:
    """Return the division of the budget, the axes, and warnings."""
    parts, round_of = plan.division, first_round(sweep)
    hours = f", {parts.core_hours:.2g} core hours" if parts.core_hours else ""
    all_of = parts.tuning_seconds + parts.race_seconds
    rest = "; these axes have no use for more" if all_of < 0.9 * parts.seconds else ""
    reach = "" if parts.points >= round_of else f" (a whole round is {round_of}: the last axes may not get their turn)"
    return [
        f"budget {plan.budget}: {parts.tuning_runs + parts.race_runs} runs of {plan.each}, about {duration(all_of)} at "
        f"most ({MEASURED_SPEED}){hours}{rest}",
        f"  1. tuning, about {duration(parts.tuning_seconds)}: at most {parts.points} settings, the recipe as it is "
        f"among them, on seeds {_several(plan.seeds)}{reach}; scored on text held back from training",
        f"  2. race, about {duration(parts.race_seconds)}: what was found against the recipe as it is, on fresh seeds "
        f"{_several(plan.race_seeds)} and the held-out text: that is the result",
        "  axes, in this order:",
        *(f"    {path}: {knob}" for path, knob in sweep.space.items()),
        *(f"  note: {line}" for line in plan.warnings),
    ]


def _several(seeds: tuple[int, ...]) -> str:
    whole = len(seeds) > 2 and seeds == tuple(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]} to {seeds[-1]}" if whole else ", ".join(map(str, seeds))


def why(step: Step, score: str) -> str:
    """Return why a knob's value was kept or not, and what else was tried."""
    said, names_best = _reason(step, score)
    rest = [_value(each.value) for each in step.tried if not names_best or each is not step.best]
    values = ", ".join(rest[:_MOST_VALUES]) + ", ..." * (len(rest) > _MOST_VALUES)
    return f"{said} (tried: {values})" if rest else said


def _reason(step: Step, score: str) -> tuple[str, bool]:
    """Return the reason, and whether it names the best value that was tried."""
    unit, best, here = UNITS[score], step.best, _value(step.before)
    stays, value = f"{step.path} stays {here}", _value(best.value)
    if best.gain == -math.inf:
        return f"{stays}: nothing else could be trained", False
    if step.kept:
        gain = f"{best.gain:.3f} {unit} better while tuning; seeds explain up to {step.needed:.3f}"
        if math.isinf(best.gain):
            gain = "the present one could not be trained"
        return f"{step.path} {here} -> {_value(step.after)}: {gain}", True
    if not math.isfinite(step.needed):
        return f"{stays}: how much seeds differ is not known", False
    if best.gain > 0:
        return f"{stays}: {value} is only {best.gain:.3f} {unit} better; seeds explain up to {step.needed:.3f}", True
    if max(abs(each.gain) for each in step.tried) < step.needed:
        return f"{stays}: what was tried differs by less than seeds do", False
    return f"{stays}: {value} is {-best.gain:.3f} {unit} worse", True


def _value(value: Any) -> str:
    return "its own" if value is None else plain(as_typed(value), 60)


class TuningSnapshot(Snapshot[TuningPlan, TuningStatus]):
    """A tuning at one moment."""

    noun: ClassVar[str] = "tuning"
    kind_of_result = TuningResult
    drawn_by = "workbench.experiments.tune.tuning_pictures"

    @property
    def progress(self) -> str:
        """Its progress in one line."""
        now = self.now
        if now.race is not None:
            return f"{now.stage}; its race: {now.race.progress}"
        done = now.sweep.progress.replace("points", "settings")
        return f"{done}, now {self.turn}" if now.stage == "tuning" and not self.ended else done

    @property
    def turn(self) -> str:
        """The knob whose turn it is."""
        paths, steps = list(self.now.sweep.plan.space), self.now.steps
        # Knobs that the present choices do not have take no turn.
        return paths[(paths.index(steps[-1].path) + 1) % len(paths)] if steps else paths[0]

    @property
    def said(self) -> list[str]:
        """The claim first, then the search; never a score that settings were chosen on."""
        waiting = "" if self.now.sweep.now.points or self.ended else _WAITING
        lines = [self.error, waiting, *self._outcome(), *self._limits()]
        return [*filter(None, lines), *self.more]

    @property
    def more(self) -> list[str]:
        """The decisions of the search, one line each."""
        steps = [f"  {number}. {why(step, self.plan.score)}" for number, step in enumerate(self.now.steps, 1)]
        return [TRIED, *steps] if steps else []

    def cannot_race(self) -> str:
        """Return why a race would end undecided for certain; empty where it may find something.

        Means are compared only where all seeds learn more than word frequencies: a race of others would spend its
        budget on saying so.
        """
        kept = self.now.sweep.now.points[self.now.kept_point or 0].readings.values()
        if any(reading.left_floor for reading in kept):
            return ""
        return (f"in {self.plan.each} not even the best setting got more than {MARGIN_NATS} nats below word "
                f"frequencies, so a race would decide nothing: {_MORE_TIME}")  # fmt: skip

    @property
    def changes(self) -> str:
        """The changes to the recipe that it began from, in one line."""
        return ", ".join(
            f"{path} {_value(before)} -> {_value(after)}" for path, (before, after) in self.now.changed.items()
        )

    def _outcome(self) -> list[str]:
        now = self.now
        if now.stage == "tuning":
            return [(f"so far: {self.changes}" if now.changed else "nothing has paid so far") if now.steps else
                    "no knob has been decided"]  # fmt: skip
        if now.stage == "nothing paid":
            return ["nothing that was tried pays by more than seeds explain: the recipe stays as it was, and there is "
                    "nothing to race"]  # fmt: skip
        if now.race is None or now.stage == "tuned, not yet confirmed":
            return [f"tuned, not yet confirmed: {self.changes}"]
        verdict = now.race.now.verdicts[TUNED]
        # Undecided may mean that it has learned on more seeds, though not on so many more that chance is ruled out.
        rest = "; keep the recipe that you began from" if verdict.verdict in ("worse", "equivalent") else ""
        return [f"{now.stage}: {self.changes}{rest}", sentence(now.race.plan, verdict)]

    def _limits(self) -> list[str]:
        """Say that no run has learned anything, and that the search was cut short."""
        plan, now, found = self.plan, self.now, []
        ended = [reading for _, reading in now.sweep.now.runs if reading.status == "done"]
        if now.stage in ("tuning", "nothing paid") and ended and not any(reading.left_floor for reading in ended):
            found.append(f"in {plan.each} no run got more than {MARGIN_NATS} nats below word frequencies, which says "
                         f"little about a recipe: {_MORE_TIME}")  # fmt: skip
        if now.cut_short:
            found.append(f"the search was not over when its part of the budget, about "
                         f"{duration(plan.division.tuning_seconds)} of {plan.budget}, was spent: a larger budget may "
                         "find more")  # fmt: skip
        return found

    @property
    def brief(self) -> str:
        """The stage of its claim, with the verdict of its race."""
        if self.status in ("cancelled", "failed"):
            return self.status if self.now.stage == "tuning" else f"{self.status}; {self.now.stage}"
        return "; ".join([self.now.stage, *([self.now.race.brief] if self.now.race is not None else [])])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row per setting: ``point, changed, status, tuning_score, scores, kept, error, runs``, and the knobs by
        path. ``changed`` are its values that differ from the first setting, the recipe as it is."""
        now, points = self.now, self.now.sweep.now.points
        kept = {0, *(step.best.point for step in now.steps if step.kept)}
        first = points[0].point.values if points else {}
        return [
            {
                "point": row["point"],
                "changed": {path: value for path, value in points[row["point"]].point.values.items()
                            if first.get(path) != value},
                "tuning_score": row["score"], "kept": row["point"] in kept,
                **{key: row[key] for key in ("status", "scores", "error", "runs", *now.sweep.plan.space)},
            }
            for row in now.sweep.rows
        ]  # fmt: skip

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return every setting in the order in which it was tried."""
        titles = ["setting", "state", "differs in", f"tuning score ({UNITS[self.plan.score]})", "seeds"]
        lines = []
        for row in self.rows:
            changed = ", ".join(f"{short(path)}={as_typed(value)}" for path, value in row["changed"].items())
            done = "kept" if row["kept"] else ""
            state = done if row["status"] == "done" else f"{row['status']}{': ' * bool(row['error'])}{row['error']}"
            lines.append([str(row["point"]), plain(state, 80), plain(changed, 100) or "nothing: the recipe as it is",
                          decimal(row["tuning_score"], 3), str(len(row["scores"]))])  # fmt: skip
        return titles, lines

    def table_html(self) -> str:
        """Return the race's tables, once there is one, and all settings."""
        return (self.now.race.table_html() if self.now.race is not None else "") + super().table_html()

    @property
    def picks(self) -> list[Pick]:
        """Settings, and runs of the race."""
        return [*self.now.sweep.picks, *(self.now.race.picks if self.now.race is not None else ())]

    @property
    def best(self) -> str | None:
        """The setting that is kept."""
        return None if self.now.kept_point is None else f"{self.now.kept_point}"

    def facts(self) -> dict[str, Any]:
        """Return the keys of its result, see :class:`TuningResult`."""
        plan, now = self.plan, self.now
        race = now.race and now.race.result()
        return {
            "stage": now.stage,
            **{key: race and race[key] for key in ("verdict", "difference", "interval", "speedup", "p")},
            "recipe": now.recipe.to_dict(), "changed": {path: list(values) for path, values in now.changed.items()},
            "budget": plan.budget, "each": plan.each, "division": asdict(plan.division),
            "race_seeds": plan.race_seeds, "before": plan.recipe, "steps": [self._step(step) for step in now.steps],
            "settings": self.rows, "race": race and dict(race),
        }  # fmt: skip

    def _step(self, step: Step) -> dict[str, Any]:
        tried = [{**each._asdict(), "gain": finite(each.gain)} for each in step.tried]
        return {**asdict(step), "tried": tried, "needed": finite(step.needed), "kept": step.kept,
                "why": why(step, self.plan.score)}  # fmt: skip
