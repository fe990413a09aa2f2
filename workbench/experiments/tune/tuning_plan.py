"""The plan of a tuning: a recipe, a total budget and its division; a void tuning or too small a budget is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.base.errors import RecipeError
from workbench.experiments.budget import parse, shared, threads_of
from workbench.experiments.experiment_folder import RaceFolder, SweepFolder, TuningFolder
from workbench.experiments.plan import Plan, begun, known
from workbench.experiments.race.race_plan import REFERENCE, plan_race, priced
from workbench.experiments.race.sequential import MOST_SEEDS
from workbench.experiments.sweep.space import MOST_POINTS, space_of
from workbench.experiments.sweep.stepwise import FEWEST_SEEDS, ROUNDS, Settings, alternatives
from workbench.experiments.sweep.sweep_plan import TUNING_SEED, SweepPlan, plan_sweep
from workbench.experiments.tune.axes import space_asked
from workbench.experiments.validation import (
    START_SECONDS,
    Log,
    at_once,
    check_options,
    is_number,
    recipe_here,
    recipe_of,
    seeds_of,
)  # fmt: skip
from workbench.experiments.words import duration

if TYPE_CHECKING:
    from workbench.experiments.plan import Score
    from workbench.forecasting.forecast import Forecast
    from workbench.recipes.recipe import Recipe

RACES = (10, 6, 4)
"""Seeds of the race: the most that fit into its share of the budget."""
SHARE = 0.6
"""Share of the budget that settings may take before the race has ten seeds."""
_MOST_TUNING_SEEDS = 6
_MAY = "'before' may "
"""A race's doubt about the recipe begins with this."""
BEFORE, TUNED = "before", "tuned"
"""Arms of its race."""


@dataclass(frozen=True)
class Division:
    """The total budget and the parts of its two stages on this machine, forecast.

    Attributes:
        seconds: of wall time, in all. points: settings that the first stage may try.
        tuning_runs, tuning_seconds, race_runs, race_seconds: of each stage, at most.
        core_hours: of both; 0 on a GPU.
    """

    seconds: float
    points: int
    tuning_runs: int
    tuning_seconds: float
    race_runs: int
    race_seconds: float
    core_hours: float


@dataclass(frozen=True, repr=False, kw_only=True)
class TuningPlan(Plan):
    """A tuning as its folder keeps it; the space that it searches stands in the plan of its sweep.

    Attributes:
        recipe: that it begins from, as JSON. budget: in all, as asked. each: budget of each run.
        seeds: for choosing settings. race_seeds: for the race; none of them is among the former.
        division: of the budget.
    """

    recipe: dict[str, Any]
    budget: str
    each: str
    race_seeds: tuple[int, ...]
    division: Division

    def __repr__(self) -> str:
        parts = self.division
        return (f"<tuning: at most {parts.points} settings and a race of {len(self.race_seeds)} seeds, "
                f"{parts.tuning_runs + parts.race_runs} runs, about "
                f"{duration(parts.tuning_seconds + parts.race_seconds)}>")  # fmt: skip

    @property
    def sweep(self) -> SweepFolder:
        """Folder of the first stage: settings, on tuning text."""
        return SweepFolder(SweepFolder.root(self.runs_dir) / self.id)

    @property
    def race(self) -> RaceFolder:
        """Folder of the second: a race of the recipe found, on fresh seeds and the held-out text."""
        return RaceFolder(RaceFolder.root(self.runs_dir) / self.id)

    def base(self) -> Recipe:
        """Return the recipe that it begins from. (Imports torch, through the choices.)

        Raises:
            RecipeError: of another version, or of an engine or choice that is not here.
        """
        from workbench.recipes.recipe import Recipe

        return Recipe(**self.recipe)

    @classmethod
    def _parts(cls, raw: dict[str, Any]) -> dict[str, Any]:
        return {"division": Division(**known(Division, raw["division"]))}


def plan_tuning(
    recipe: Recipe | str,
    budget: str | None,
    axes: Mapping[str, Any] | Collection[str] | None = None,
    *,
    each: str | None = None,
    seeds: int | Sequence[int] = 2,
    race_seeds: int | Sequence[int] | None = None,
    share: float = SHARE,
    score: Score = "nats",
    name: str | None = None,
    runs_dir: str | Path | None = None,
    rates: Any = None,
    say: Log | None = None,
) -> tuple[TuningPlan, SweepPlan]:
    """Return the plan of a tuning and that of its sweep; see :func:`workbench.experiments.tune.tune.tune`.

    Raises:
        RecipeError, DataError: as there; nothing was launched.
    """
    from workbench.choices.data.tuning_text import on_own_text, on_tuning_text
    from workbench.forecasting.forecast import forecast

    log = check_options(name=name, runs_dir=runs_dir, say=say, score=score)
    base = recipe_here(on_own_text(recipe_of(recipe)))
    total = _seconds(budget, "budget", "a tuning needs a total budget, for all of its runs together: budget='2 hours'")
    if not is_number(share) or not 0 < share < 1:
        raise RecipeError(f"share: of the budget that goes into tuning is between 0 and 1, got {share!r:.60}")
    chosen = seeds_of(seeds, "tuning", TUNING_SEED, FEWEST_SEEDS, _MOST_TUNING_SEEDS)
    asked = None if race_seeds is None else seeds_of(race_seeds, "race", 0, RACES[-1], MOST_SEEDS)
    space = space_asked(axes, base)
    path, fewest = next(iter(space)), len(Settings.of(base.to_dict()).first(space_of(space, base)))
    threads = threads_of(base)
    # Before anything is read or measured, which may take minutes.
    known = _known_seconds(base, each)
    least = _Costs(known, 0.0, threads, len(chosen), lambda count: _least_race(count, known, threads))
    least.check(str(budget), total, (path, fewest), len(asked or range(RACES[-1])), f"{known:g} s" if known else "")

    def ahead(one: Recipe) -> Forecast:
        return forecast(one, rates=rates, say=log)

    text = f"{ahead(base).seconds:.4g} s" if each is None else each
    _seconds(text, "each", "")
    title = name or f"{base.name} tuned"
    # First on the text of results, which says what is wrong with the recipe in its own words.
    race = plan_race({BEFORE: base, TUNED: base}, text, asked or RACES[-1], score=score, runs_dir=runs_dir,
                      rates=rates)  # fmt: skip
    sweep, _ = plan_sweep(
        on_tuning_text(base), space, sampler="stepwise", runs=MOST_POINTS, seeds=chosen, budget=text, score=score,
        name=f"{title[:60]} (tuning)", runs_dir=runs_dir, rates=rates, say=log,
    )  # fmt: skip
    _, own = shared(base, parse(text), "reference", ahead)
    costs = _Costs(own.seconds, len(sweep.space) * own.compile_seconds, own.threads, len(chosen),
                   lambda count: priced(replace(race, seeds=tuple(range(count)))).cost.seconds)  # fmt: skip
    raced = _race_seeds(costs, total, share, fewest, asked)
    if spoiled := set(raced) & set(chosen):
        raise RecipeError(f"race_seeds: {', '.join(map(str, sorted(spoiled)))} would be tuned on, and what is tuned on "
                          "a seed cannot be claimed on it; give the race others")  # fmt: skip
    costs.check(str(budget), total, (path, fewest), len(raced), text)
    points = min(costs.points(total - costs.race(len(raced))), MOST_POINTS, _enough(sweep))
    runs, race_runs = points * len(chosen), len(raced) * race.cost.runs // len(race.seeds)
    seconds, race_seconds = costs.tuning(points), costs.race(len(raced))
    hours = threads * (seconds + race_seconds) * at_once([threads]) / 3600
    plan = TuningPlan(
        **begun(name or "tuning", base.hash, runs_dir), name=title[:80], recipe=base.to_dict(), budget=str(budget),
        each=text, seeds=chosen, race_seeds=raced, score=sweep.score,
        division=Division(total, points, runs, seconds, race_runs, race_seconds, hours),
        warnings=tuple(_short(line, text) for line in race.warnings if line.startswith(_MAY)),
    )  # fmt: skip
    cost = replace(sweep.cost, runs=runs, seconds=seconds, core_hours=threads * seconds * sweep.at_once / 3600)
    return plan, replace(sweep, id=plan.id, runs=points, cost=cost, part_of=TuningFolder.tag_of(plan.name))


class _Costs:
    """The cost of the stages, as if every setting took as long as the recipe: all have one budget of time.

    Args:
        each: seconds of a run. compiling: seconds of all that is compiled anew, on one processor.
        threads: of a run. seeds: of a setting. race: seconds of one of so many seeds.
    """

    def __init__(self, each: float, compiling: float, threads: int, seeds: int, race: Callable[[int], float]) -> None:
        side_by_side = at_once([threads])
        self._seeds, self._point = seeds, seeds * (each + START_SECONDS) / side_by_side
        self._compiling = compiling / side_by_side
        self.race = race

    def tuning(self, points: int) -> float:
        return points * self._point + self._compiling

    def points(self, seconds: float) -> int:
        return int((seconds - self._compiling) / self._point)

    def check(self, budget: str, total: float, first: tuple[str, int], race_seeds: int, each: str) -> None:
        """Refuse a budget that has no room for the first settings and the race.

        Args:
            total: seconds of the budget. first: knob and number of the first settings.
            each: time of a run as text; empty where nobody knows it yet.

        Raises:
            RecipeError: what it takes, and the way out.
        """
        (path, fewest), race = first, self.race(race_seeds)
        if (least := self.tuning(fewest) + race) > total:
            about = "about" if each else "at least"
            raise RecipeError(
                f"budget '{budget}' is too small: the first {fewest} settings ({path}) on {self._seeds} seeds"
                f"{f' of {each} each' if each else ''} take {about} {duration(self.tuning(fewest))}, and the race of "
                f"{race_seeds} seeds that says what was found is worth takes up to {duration(race)}; "
                f"give it at least {least / 60:.3g} min"
                + (f", or less time to each run (each, or --each; now {each})" if each else "")
            )


def _race_seeds(
    costs: _Costs, total: float, share: float, fewest: int, asked: tuple[int, ...] | None
) -> tuple[int, ...]:
    """Return the seeds asked for; else the most that leave ``share`` of the budget, and enough of it, to tuning."""
    if asked is not None:
        return asked
    for count in RACES:
        if costs.race(count) <= (1 - share) * total and costs.tuning(fewest) + costs.race(count) <= total:
            return tuple(range(count))
    return tuple(range(RACES[-1]))


def _known_seconds(base: Recipe, each: str | None) -> float:
    """Return the seconds of a run as far as nothing needs to be measured; 0 where nobody knows."""
    if each is not None:
        return _seconds(each, "each", "")
    return base.budget.amount if base.budget.unit == "seconds" else 0.0


def _least_race(seeds: int, each: float, threads: int) -> float:
    """Return the seconds of a race of so many seeds, of runs of ``each`` seconds that compile nothing."""
    ratios = (1.0, 1.0, *REFERENCE)
    return seeds * (sum(ratios) * each + len(ratios) * START_SECONDS) / at_once([threads])


def _short(doubt: str, each: str) -> str:
    """Turn a race's doubt about the recipe into one about the runs of a tuning."""
    return (f"runs of {each} may be too short to be raced; they may {doubt.removeprefix(_MAY)}: give each run more "
            "time (each=..., `--each`)")  # fmt: skip


def _enough(sweep: SweepPlan) -> int:
    """Return the number of settings beyond which a search has nothing left to try."""
    return 1 + ROUNDS * (first_round(sweep) - 1 + 2 * sum(not knob.values for knob in sweep.space.values()))


def first_round(sweep: SweepPlan) -> int:
    """Count the settings of a first round in which nothing pays: the recipe as it stands, and every other value."""
    start = Settings.of(sweep.recipe).start(sweep.space)
    return 1 + sum(len(alternatives(knob, start.get(path))) for path, knob in sweep.space.items())


def _seconds(text: object, argument: str, missing: str) -> float:
    """Return a budget of time in seconds."""
    if text is None:
        raise RecipeError(f"{argument}: {missing}")
    try:
        amount, unit = parse(text)
    except RecipeError as error:
        raise RecipeError(f"{argument}: {str(error).removeprefix('budget: ')}") from None
    if unit != "seconds":
        raise RecipeError(f"{argument}: a tuning divides time, and compares at equal time: write '90 s', '30 minutes' "
                          f"or '2 hours', got '{text}'")  # fmt: skip
    return amount
