"""The plan of a race: arms, seeds, budgets and looks; everything that makes a race unfair or void is refused first."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.base.errors import RecipeError, unknown
from workbench.base.text import plain
from workbench.experiments.budget import Share, check_size, labels_of, parse, shared
from workbench.experiments.plan import Cost, RunsPlan, Score, begun, known
from workbench.experiments.race.sequential import ALPHA, FEWEST_SEEDS, LEAST_ALPHA, MARGIN_NATS, MOST_SEEDS, Design
from workbench.experiments.validation import (
    START_SECONDS,
    Log,
    at_once,
    check_options,
    is_number,
    recipe_here,
    recipe_of,
    same_text,
    seeds_of,
)  # fmt: skip
from workbench.experiments.words import duration
from workbench.store.checkpoints import problem_with
from workbench.store.folder import RunFolder
from workbench.store.labels import name_of
from workbench.telemetry.baselines import MARGIN_NATS as FLOOR_MARGIN

if TYPE_CHECKING:
    from workbench.choices.data.tokens import PreparedData
    from workbench.forecasting.forecast import Forecast
    from workbench.recipes.recipe import Recipe

MOST_LETTERS = 40
ARM_NAME = rf"\w[\w .+-]{{0,{MOST_LETTERS - 1}}}"
REFERENCE = (0.5, 2.0)
"""Ratios of the budget at which the baseline trains as well."""
FEW_LABELS = 5.0
"""Labelled tokens per entry of the vocabulary below which a start from scratch is said to be short: at 8 per entry a
tuned masked recipe ended 0.3 nats below word frequencies (V 2,048, 15 s of one thread, 2026)."""


class Entry(NamedTuple):
    """One run of a race.

    Attributes:
        ratio: of the race's budget; the baseline alone also has others.
    """

    arm: str
    seed: int
    ratio: float = 1.0

    @property
    def title(self) -> str:
        """Its name in lists."""
        return f"{self.arm}{'' if self.ratio == 1 else f' {self.ratio:g}x'} seed {self.seed}"


@dataclass(frozen=True)
class RaceCost(Cost):
    """The forecast of a race: of all its seeds, and up to its first look.

    Attributes:
        first_runs, first_seconds: if all is decided at the first look.
    """

    first_runs: int = 0
    first_seconds: float = 0.0


@dataclass(frozen=True, repr=False, kw_only=True)
class RacePlan(RunsPlan):
    """A race as its folder keeps it.

    Attributes:
        arms: recipes as JSON, under the race's budget, by name. baseline: the arm to compare with.
        seeds: paired over the arms. margin: of equivalence, nats.
        reference: ratios of the budget at which the baseline is trained, too.
        budget, clock: as asked. shares: the budget of each arm.
        part_of: tag of the tuning that it is a stage of; empty else.
        initial: by seed, the checkpoint whose weights all arms begin with; empty where seeds draw them.
    """

    arms: dict[str, dict[str, Any]]
    baseline: str
    design: Design
    margin: float
    reference: tuple[float, ...]
    budget: str
    clock: str
    shares: dict[str, Share]
    cost: RaceCost
    at_once: int
    part_of: str = ""
    initial: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        most = "at most " if len(self.design.looks) > 1 else ""
        return (f"<race of {plain(' and '.join(self.arms), 100)}: {most}{len(self.seeds)} seeds, {self.cost.runs} "
                f"runs, about {duration(self.cost.seconds)}>")  # fmt: skip

    @property
    def others(self) -> list[str]:
        """The arms beside the baseline."""
        return [arm for arm in self.arms if arm != self.baseline]

    def entries(self, seeds: int, arms: Iterable[str]) -> list[Entry]:
        """List the runs of a look at so many seeds: seed by seed, the baseline first, its other budgets last."""
        raced = [self.baseline, *(arm for arm in arms if arm != self.baseline)]
        return [
            entry
            for seed in self.seeds[:seeds]
            for entry in (
                *(Entry(arm, seed) for arm in raced),
                *(Entry(self.baseline, seed, ratio) for ratio in self.reference),
            )
        ]

    def run_id(self, entry: Entry) -> str:
        """Return the id of an entry's run, which follows from the plan."""
        slug = re.sub(r"[^a-z0-9]+", "-", entry.arm.lower()).strip("-")[:20].strip("-") or "arm"
        digest = hashlib.sha256(repr((self.id, *entry)).encode()).hexdigest()[:10]
        return f"{self.id[:15]}-{slug}-s{entry.seed}-{digest}"

    def run_folder(self, job: Entry) -> RunFolder:
        """See :meth:`RunsPlan.run_folder`."""
        return RunFolder(Path(self.runs_dir) / self.run_id(job))

    def recipe_of(self, job: Entry) -> Recipe:
        """See :meth:`RunsPlan.recipe_of`."""
        from workbench.recipes.recipe import Recipe

        recipe = Recipe(**self.arms[job.arm])
        amount = recipe.budget.amount * job.ratio
        amount = float(max(1, round(amount))) if recipe.budget.unit != "seconds" else amount
        return recipe.with_(name=job.title[:80], seed=job.seed, budget={"amount": amount})

    def facts_of(self, job: Entry) -> dict[str, Any]:
        """See :meth:`RunsPlan.facts_of`."""
        return job._asdict()

    def title_of(self, job: Entry) -> str:
        """See :meth:`RunsPlan.title_of`."""
        return job.title

    def launch_options(self, job: Entry) -> dict[str, Any]:
        """See :meth:`RunsPlan.launch_options`."""
        weights = self.initial.get(str(job.seed))
        return {"initial": weights} if weights else {}

    @classmethod
    def _parts(cls, raw: dict[str, Any]) -> dict[str, Any]:
        design = known(Design, raw["design"])
        return {
            "design": Design(tuple(design["looks"]), design["alpha"], tuple(design["critical"])),
            "shares": {arm: Share(**known(Share, share)) for arm, share in raw["shares"].items()},
            "cost": RaceCost(**known(RaceCost, raw["cost"])),
        }


def plan_race(
    arms: Mapping[str, Recipe | str] | str,
    budget: str | None = None,
    seeds: int | Sequence[int] = 6,
    *,
    baseline: str | None = None,
    score: Score = "nats",
    reference: Sequence[float] = REFERENCE,
    clock: str = "reference",
    margin: float = MARGIN_NATS,
    alpha: float = ALPHA,
    name: str | None = None,
    runs_dir: str | Path | None = None,
    rates: Any = None,
    initial: Mapping[int, str | Path] | None = None,
    say: Log | None = None,
) -> RacePlan:
    """Return the plan of a race; see :func:`workbench.experiments.race.race.race`.

    Raises:
        RecipeError, DataError: as there; nothing was launched.
    """
    from workbench.forecasting.forecast import forecast

    log = check_options(name=name, runs_dir=runs_dir, say=say, score=score, clock=clock, budget=budget)
    sources = {_arm_name(arm): source for arm, source in _several(arms).items()}
    recipes = {arm: recipe_of(source) for arm, source in sources.items()}
    first = _baseline(recipes, baseline)
    chosen = seeds_of(seeds, "race", 0, FEWEST_SEEDS, MOST_SEEDS, "; verdicts come after 4, 6 and 10")
    if not (is_number(alpha) and LEAST_ALPHA <= alpha < 1 and is_number(margin) and margin >= 0):
        raise RecipeError("alpha, the chance of a claim where there is no difference, must be between "
                          f"{LEAST_ALPHA:g} and 1, and margin, the nats within which arms are equivalent, at least "
                          f"0, got {alpha!r:.60} and {margin!r:.60}")  # fmt: skip
    ratios, weights = _ratios(reference), _weights(initial or {}, chosen)
    recipes = {arm: recipe_here(recipe) for arm, recipe in recipes.items()}
    ready = same_text({f"arm '{arm}'": recipe for arm, recipe in recipes.items()}, score, log)
    prepared = dict(zip(recipes, ready.values(), strict=True))

    def ahead(recipe: Recipe) -> Forecast:
        return forecast(recipe, rates=rates, say=log)

    text = f"{ahead(recipes[first]).seconds:.4g} s" if budget is None else budget
    warnings = [] if budget else _unused(recipes, first, text)
    shares: dict[str, Share] = {}
    for arm, recipe in recipes.items():
        # How often, and on how much text, an arm is scored is the race's to say.
        rules = recipes[first].budget.model_dump(include={"evaluations", "evaluation_tokens"})
        recipes[arm], shares[arm] = shared(recipe.with_(budget=rules), parse(text), clock, ahead)
        check_size(f"arm '{arm}'", recipes[arm], shares[arm], prepared[arm], text)
    warnings += _twins(recipes)
    if not weights:
        for arm, recipe in recipes.items():
            warnings += _doubts(arm, recipe, shares[arm], prepared[arm])
    plan = RacePlan(
        **begun(name or "race", recipes[first].hash, runs_dir), name=name or " vs ".join(recipes),
        arms={arm: recipe.to_dict() for arm, recipe in recipes.items()}, baseline=first, seeds=chosen,
        design=Design.of(len(chosen), len(recipes) - 1, alpha), margin=margin, score=score, reference=ratios,
        budget=text, clock=clock, shares=shares, cost=RaceCost(0, 0.0, 0.0),
        at_once=at_once(share.threads for share in shares.values()), warnings=tuple(warnings), initial=weights,
    )  # fmt: skip
    return priced(plan)


def arms_of(texts: Sequence[str]) -> dict[str, str]:
    """Return sources by name of texts such as ``mine=fast:optimizer.lr=1e-3``.

    Without a name, that of the preset, file or run; where another arm has it, with the changes.

    Raises:
        RecipeError: two have one name, or one of these is no recipe.
    """
    named: dict[str, str] = {}
    for text in texts:
        name, equals, source = text.partition("=")
        if not equals or ":" in name:
            path, _, changes = text.partition(":")
            file = Path(path)
            # Every run folder calls its recipe the same.
            name, source = name_of(RunFolder(file.parent)) if file.name == "recipe.json" else file.stem, text
            name = _letters(name)
            if name in named:
                name = _letters(f"{name} {changes}")
        if name in named:
            for each in (named[name], source):
                recipe_of(each)  # an unknown knob matters more than a missing name
            raise RecipeError(f"two arms have one name, '{name}'; name them: NAME=RECIPE")
        named[name] = source
    return named


def _letters(text: str) -> str:
    return re.sub(r"[^\w.+-]+", " ", text).strip()[:MOST_LETTERS].rstrip()


def _several(arms: Mapping[str, Recipe | str] | str) -> Mapping[str, Recipe | str]:
    if isinstance(arms, str):
        arms = arms_of(shlex.split(arms))
    wanted = "a dict of names and recipes, such as {'baseline': 'fast', 'mine': 'fast:optimizer.lr=1e-3'}"
    if not isinstance(arms, Mapping):
        raise RecipeError(f"arms: a race takes {wanted}, got {arms!r:.80}")
    if len(arms) < 2:
        raise RecipeError(f"a race needs at least two arms: give {wanted}")
    return arms


def _arm_name(name: object) -> str:
    if not isinstance(name, str) or not re.fullmatch(ARM_NAME, name):
        raise RecipeError(f"arm {name!r:.60}: a name has 1 to 40 letters, digits, spaces or . + - _")
    return name


def _baseline(recipes: Mapping[str, Recipe], baseline: str | None) -> str:
    if baseline is not None and not (isinstance(baseline, str) and baseline in recipes):
        raise RecipeError(unknown("baseline", baseline, recipes))
    return baseline or ("baseline" if "baseline" in recipes else next(iter(recipes)))


def _ratios(reference: Sequence[float]) -> tuple[float, ...]:
    several = isinstance(reference, Collection) and not isinstance(reference, str)
    if not several or not all(is_number(ratio) and 0.01 <= ratio <= 100 for ratio in reference):
        raise RecipeError("reference: give ratios of the budget between 0.01 and 100, such as (0.5, 2), or () for "
                          f"none, got {reference!r:.60}")  # fmt: skip
    return tuple(sorted({float(ratio) for ratio in reference} - {1.0}))


def _weights(initial: Mapping[int, str | Path], seeds: Sequence[int]) -> dict[str, str]:
    if initial and (lacking := [seed for seed in seeds if seed not in initial]):
        raise RecipeError(f"initial: seed {lacking[0]} has no checkpoint to begin with; give each seed of the race one")
    found = {str(seed): str(Path(initial[seed]).expanduser().absolute()) for seed in seeds if initial}
    for path in found.values():
        if (problem := problem_with(Path(path))) is not None:
            raise RecipeError(f"initial: '{path}' is no checkpoint to begin with ({problem})")
    return found


def _unused(recipes: Mapping[str, Recipe], first: str, text: str) -> list[str]:
    """Warn of budgets of recipes that the race does not use."""
    own = str(recipes[first].budget)
    return [f"the budget of '{arm}', {recipe.budget}, is not used: each arm gets {text}, as long as '{first}' takes "
            f"for its own {own}; give the race a budget to change that"
            for arm, recipe in recipes.items() if str(recipe.budget) != own]  # fmt: skip


def _twins(recipes: Mapping[str, Recipe]) -> list[str]:
    """Warn of arms in which nothing differs that training depends on."""
    same: dict[str, list[str]] = {}
    for arm, recipe in recipes.items():
        # Seeds are the race's to say; names and notes train nothing.
        asked = json.dumps({**recipe.to_dict(), "name": "", "notes": "", "seed": 0}, sort_keys=True)
        same.setdefault(asked, []).append(f"'{arm}'")
    return [f"{' and '.join(arms)}: these arms ask for the same training, so any difference between them is noise"
            for arms in same.values() if len(arms) > 1]  # fmt: skip


def _doubts(arm: str, recipe: Recipe, share: Share, prepared: PreparedData) -> list[str]:
    """Warn where the arm may learn nothing beyond word frequencies within its budget."""
    labels = labels_of(recipe, share) / prepared.vocabulary.size
    if labels < FEW_LABELS:
        return [f"'{arm}' may not get {FLOOR_MARGIN} nats below word frequencies: {labels:.1f} labelled tokens per "
                "entry of its vocabulary are few; means are compared only where all seeds do"]  # fmt: skip
    return []


def priced(plan: RacePlan) -> RacePlan:
    """Return the plan with its cost, forecast: all of it, and up to its first look."""

    def cost(seeds: int) -> tuple[int, float, float]:
        entries = plan.entries(seeds, plan.others)
        each = [plan.shares[entry.arm].seconds * entry.ratio + START_SECONDS for entry in entries]
        compiling = sum(share.compile_seconds for share in plan.shares.values())
        cores = sum(plan.shares[entry.arm].threads * took for entry, took in zip(entries, each, strict=True))
        return len(entries), (sum(each) + compiling) / plan.at_once, cores / 3600

    first_runs, first_seconds, _ = cost(plan.design.looks[0])
    return replace(plan, cost=RaceCost(*cost(len(plan.seeds)), first_runs, first_seconds))
