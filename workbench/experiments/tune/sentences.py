"""A tuning in plain words: how its budget is divided, what was kept and why, and what that is worth."""

from __future__ import annotations

import math
from typing import Any

from workbench.base.fields import as_typed
from workbench.base.text import plain
from workbench.experiments.experiment_folder import ENDED
from workbench.experiments.race.sentences import progress as race_progress
from workbench.experiments.race.sentences import sentence
from workbench.experiments.sweep.plan import SweepPlan
from workbench.experiments.sweep.sentences import progress as sweep_progress
from workbench.experiments.sweep.stepwise import Step
from workbench.experiments.tune.plan import TUNED, TuningPlan
from workbench.experiments.tune.status import Standing
from workbench.experiments.words import IDLE, UNITS, duration
from workbench.telemetry.baselines import MARGIN_NATS

TRIED = "what was tried:"
_UNTOUCHED = "one is the recipe as it is"
_MOST_VALUES = 8
"""Of a knob that a line names."""
_MORE_TIME = "give each run more time (each=..., `--each`)"
_WAITING = "waiting for the process that picks the settings: it loads for some seconds, then the first one stands here"


def cost_lines(plan: TuningPlan, sweep: SweepPlan, first_round: int) -> list[str]:
    """How the budget is divided, what is searched, and what speaks against it.

    Args:
        first_round: settings of a round in which nothing pays.
    """
    parts, seeds = plan.division, ", ".join(map(str, plan.seeds))
    hours = f", {parts.core_hours:.2g} core hours" if parts.core_hours else ""
    all_of = parts.tuning_seconds + parts.race_seconds
    rest = "; these axes have no use for more" if all_of < 0.9 * parts.seconds else ""
    reach = ("which is enough for a whole round" if parts.points >= first_round else
             f"and a whole round is {first_round}: the last axes may not get their turn")  # fmt: skip
    return [
        f"budget {plan.budget}: {parts.tuning_runs + parts.race_runs} runs of {plan.each}, about {duration(all_of)} at "
        f"most {IDLE}{hours}{rest}",
        f"  1. tuning, about {duration(parts.tuning_seconds)}: at most {parts.points} settings ({_UNTOUCHED}) on seeds "
        f"{seeds}, "
        f"{reach}; scored on text that is held back from training, never on what results are scored on",
        f"  2. race, about {duration(parts.race_seconds)}: what was found against the recipe as it is, on fresh seeds "
        f"{_seeds(plan.race_seeds)} and the held-out text: that is the result",
        "  axes, in this order:",
        *(f"    {path}: {knob}" for path, knob in sweep.space.items()),
        *(f"  note: {line}" for line in plan.warnings),
    ]


def _seeds(seeds: tuple[int, ...]) -> str:
    whole = seeds == tuple(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]} to {seeds[-1]}" if whole else ", ".join(map(str, seeds))


def progress(plan: TuningPlan, now: Standing, *, ended: bool = False) -> str:
    """How far a tuning is, in one line."""
    if now.race is not None and now.race_plan is not None:
        return f"{now.stage}; its race: {race_progress(now.race_plan, now.race)}"
    turn = f", now {_turn(now)}" if now.stage == "tuning" and not ended else ""
    done = sweep_progress(now.sweep_plan, now.sweep).replace("points", "settings")
    if any(each.status == "done" for each in now.sweep.points[:1]):
        done = done.replace("settings done", f"settings done ({_UNTOUCHED})", 1)
    return f"{done}{turn}"


def _turn(now: Standing) -> str:
    """The knob whose turn it is."""
    paths = list(now.sweep_plan.space)
    # Knobs that the present choices do not have take no turn.
    return paths[(paths.index(now.steps[-1].path) + 1) % len(paths)] if now.steps else paths[0]


def why(step: Step, score: str) -> str:
    """Why a knob's value was kept or not, and what else was tried."""
    said, names_best = _reason(step, score)
    rest = [_value(each.value) for each in step.tried if not names_best or each is not step.best]
    values = ", ".join(rest[:_MOST_VALUES]) + ", ..." * (len(rest) > _MOST_VALUES)
    return f"{said} ({'also ' * names_best}tried: {values})" if rest else said


def _reason(step: Step, score: str) -> tuple[str, bool]:
    """In words, and whether they name the best value that was tried."""
    unit, best, here = UNITS[score], step.best, _value(step.before)
    stays = f"{step.path} stays {here}"
    if best.gain == -math.inf:
        return f"{stays}: nothing else that was tried could be trained", False
    if step.kept:
        gain = (
            "the present one could not be trained"
            if math.isinf(best.gain)
            else f"{best.gain:.3f} {unit} better while tuning; seeds explain up to {step.needed:.3f}"
        )
        return f"{step.path} {here} -> {_value(step.after)}: {gain}", True
    if not math.isfinite(step.needed):
        return f"{stays}: how much seeds differ is not known", False
    if best.gain > 0:
        return (f"{stays}: {_value(best.value)} is only {best.gain:.3f} {unit} better, which seeds alone explain "
                f"(up to {step.needed:.3f})"), True  # fmt: skip
    if max(abs(each.gain) for each in step.tried) < step.needed:
        alone = len(step.tried) == 1
        verdict = "; not tunable at this budget" if step.round == 1 else ""
        others = _value(best.value) if alone else "what was tried"
        return f"{stays}: {others} differs by less than seeds do{verdict}", alone
    return f"{stays}: {_value(best.value)} is {-best.gain:.3f} {unit} worse", True


def cannot_race(plan: TuningPlan, now: Standing) -> str:
    """Why a race would end undecided for certain; empty where it may find something.

    Means are compared only where all seeds leave word frequencies: of a large budget, all of the race would be spent
    on saying so.
    """
    kept = now.sweep.points[now.kept_point or 0].readings.values()
    if any(reading.left_floor for reading in kept):
        return ""
    return (f"in {plan.each} not even the best setting got more than {MARGIN_NATS} nats below word frequencies, and a "
            f"race of such runs is decided by nothing: {_MORE_TIME}")  # fmt: skip


def changes(now: Standing) -> str:
    """What differs from the recipe that it began from, in one line."""
    return ", ".join(f"{path} {_value(before)} -> {_value(after)}" for path, (before, after) in now.changed.items())


def _value(value: Any) -> str:
    return "its own" if value is None else plain(as_typed(value), 60)


def outcome(plan: TuningPlan, now: Standing) -> list[str]:
    """What a tuning says, the claim first; never a score that settings were chosen on."""
    if now.stage == "tuning":
        if not now.steps:
            return ["no knob has been decided"]
        return [f"so far: {changes(now)}" if now.changed else "nothing has paid so far"]
    if now.stage == "nothing paid":
        return ["nothing that was tried pays by more than seeds explain: the recipe stays as it was, and there is "
                "nothing to race"]  # fmt: skip
    if now.race is None or now.race_plan is None or now.stage == "tuned, not yet confirmed":
        return [f"tuned, not yet confirmed: {changes(now)}"]
    verdict = now.race.verdicts[TUNED]
    # Undecided may mean that it has learned on more seeds, though not on so many more that chance is ruled out.
    rest = "; keep the recipe that you began from" if verdict.verdict in ("worse", "equivalent") else ""
    return [f"{now.stage}: {changes(now)}{rest}", sentence(now.race_plan, verdict)]


def _unlearned(plan: TuningPlan, now: Standing) -> list[str]:
    """That no run has learned anything yet, where neither a race nor why there is none says so."""
    ended = [reading for each in now.sweep.points for reading in each.readings.values() if reading.status == "done"]
    if now.stage not in ("tuning", "nothing paid") or not ended or any(reading.left_floor for reading in ended):
        return []
    return [f"in {plan.each} no run got more than {MARGIN_NATS} nats below word frequencies: models have learned "
            f"nothing more yet, which says little about a recipe; {_MORE_TIME}"]  # fmt: skip


def _cut_short(plan: TuningPlan, now: Standing) -> list[str]:
    """That the search ended for want of time, and what the rest of the budget is kept for."""
    if not now.cut_short:
        return []
    parts = plan.division
    return [f"the search was not over when its part of the budget of {plan.budget}, about "
            f"{duration(parts.tuning_seconds)}, was spent (about {duration(parts.race_seconds)} are kept for a race, "
            "which says what a change is worth): a larger budget may find more"]  # fmt: skip


def summary(plan: TuningPlan, now: Standing, status: str, note: str = "", error: str = "") -> str:
    """All that a tuning says, one line each."""
    head = f"tuning {plan.id} ({plain(plan.name, 60)}) {status}: {progress(plan, now, ended=status in ENDED)}"
    rest = [*_unlearned(plan, now), *_cut_short(plan, now)]
    steps = [f"  {number}. {why(step, plan.score)}" for number, step in enumerate(now.steps, 1)]
    tried = [TRIED, *steps] if steps else []
    waiting = "" if now.sweep.points or status in ENDED else _WAITING
    return "\n".join([head, *filter(None, (note, error, waiting)), *outcome(plan, now), *rest, *tried])
