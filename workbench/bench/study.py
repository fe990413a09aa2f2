"""Compare every method with its baseline: arms are tuned at their budget, then raced on fresh seeds at equal time.

Claim 2 of an honest comparison. A track is a baseline and sections of methods, each a change to it. Every arm's rate
and warm-up are swept by the same search on a seed that no race sees, at the steps that the budget gives this arm; then
a section is one race (:mod:`workbench.experiments.race`): paired seeds, looks after 4, 6 and 10, an error rate shared
by its
arms, and the baseline at half and twice the budget, so that a difference can be said as a speed-up. Masked arms begin
from a checkpoint per seed that has left the plateau, so that none is judged by when it would have. Resumable.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from workbench.base.errors import RunError, TargetMissed, WorkbenchError, check_known
from workbench.base.files import write_bytes
from workbench.bench.contender import Contender, note
from workbench.bench.presets import TUNING_SEED, WORKER, sweep, trained, trained_losses
from workbench.bench.result import ResultsFile, context, definition
from workbench.bench.study_page import page, rows, with_compilation
from workbench.bench.study_tracks import BASELINE, TRACKS, Track, arms_of
from workbench.bench.table import Options
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.experiments.race.race import Race, race
from workbench.experiments.race.race_plan import RacePlan, plan_race
from workbench.recipes.recipe import Recipe
from workbench.store.checkpoints import checkpoints

LEFT = 0.5
"""Nats below word frequencies at which what arms begin with must be."""
LEARNED = 1.0
"""Nats below word frequencies at which the tuned baseline must end, or the track compares who leaves the plateau."""
SAME_STEPS = 0.03
"""Share by which an arm's steps may differ from those that it was tuned at: speeds of two machines, not two budgets."""
_SHORTEST = "20 steps"
Begin = Callable[..., Race | RacePlan]
Tune = Callable[..., dict[str, tuple[Recipe, float]]]


def tuned(
    track: str, recipes: Mapping[str, Recipe], results: ResultsFile, at_once: int, initial: str = ""
) -> dict[str, tuple[Recipe, float]]:
    """Return every recipe at the rate and warm-up of least loss, and that loss; at its own budget,
    several side by side.

    Args:
        initial: the checkpoint whose weights all begin with; empty for those of the seed.
    """

    def tune(name: str) -> tuple[Recipe, float]:
        recipe = recipes[name]
        with Contender(WORKER, {"name": name, "recipe": recipe.to_dict(), "initial": initial}) as child:
            results.put(unigram_entropy=child.ready["unigram_entropy"])
            found, loss = sweep(recipe, partial(trained_losses, f"{track}/{name}", results, child))
        note(f"{name}: lr {found.optimizer.lr:g}, {loss:.3f} nats")
        return found, loss

    with ThreadPoolExecutor(at_once) as pool:
        return dict(zip(recipes, pool.map(tune, recipes), strict=True))


def compile_cold(key: str, recipe: Recipe, results: ResultsFile) -> float:
    """Return seconds that compiling a recipe takes, all stages of it, by a process that finds nothing in a cache."""
    short = recipe.with_(budget=_SHORTEST)

    def ask(message: dict[str, Any]) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            setting = {"name": key, "recipe": short.to_dict()}
            with Contender(WORKER, setting, {"TORCHINDUCTOR_CACHE_DIR": folder}) as child:
                return child.ask(message)

    return float(trained(f"{key}/compilation", short, results, ask)["compile_seconds"])


def warm_starts(
    track: str, before: Recipe, seeds: Iterable[int], results: ResultsFile, start: Callable[..., Run] = launch
) -> dict[int, str]:
    """Return the last checkpoint of a run per seed, each trained once, however often this is asked.

    Args:
        start: as :func:`workbench.client.launch.launch`; the runs take their turns.

    Raises:
        WorkbenchError: one is not :data:`LEFT` nats below word frequencies. RunFailed: one failed.
    """
    runs = {seed: _before(track, before.with_(seed=seed), results, start) for seed in seeds}
    found = {}
    for seed, run in runs.items():
        result = run.wait_blocking()
        if (below := result["unigram_entropy"] - result["heldout_loss"]) < LEFT:
            raise WorkbenchError(f"track '{track}': what arms begin with, seed {seed}, is {below:.2f} nats below word "
                                 f"frequencies, and needs {LEFT}; train it longer")  # fmt: skip
        found[seed] = str(checkpoints(run.folder.checkpoints)[-1])
    return found


def _before(track: str, recipe: Recipe, results: ResultsFile, start: Callable[..., Run]) -> Run:
    """Return the run of this very recipe that an earlier start began, resumed where it was lost; else a new one."""
    known, key = results.data.get("before", {}), f"{track}/{recipe.seed}"
    kept = known.get(key, {})
    if kept.get("definition") == definition(recipe):
        with contextlib.suppress(RunError):  # deleted
            run = Run(kept["run"])
            if run.status == "lost":
                run.resume()
            if run.status not in ("failed", "stopped"):
                return run
    run = start(recipe, name=f"study {track} before, seed {recipe.seed}", say=note)
    results.put(before={**known, key: {"run": run.id, "definition": definition(recipe)}})
    return run


def section_of(
    track: str,
    built: Track,
    section: str,
    results: ResultsFile,
    *,
    seeds: int,
    at_once: int,
    tune: Tune = tuned,
    begin: Begin = race,
    compiling: Callable[[str, Recipe, ResultsFile], float] = compile_cold,
    rates: Any = None,
) -> dict[str, Any]:
    """Tune and race a section; returns what the file keeps of it.

    Args:
        tune: as :func:`tuned` does. begin: a race, as :func:`workbench.experiments.race.race.race` does.
        compiling: seconds that compiling a recipe takes, as :func:`compile_cold` does.
        rates: of another machine.

    Raises:
        WorkbenchError: the tuned baseline is not :data:`LEARNED` nats below word frequencies. RunFailed: the race.
    """
    warm = warm_starts(track, built.before, [TUNING_SEED, *range(seeds)], results) if built.before else {}
    if warm:
        tune = partial(tune, initial=warm.pop(TUNING_SEED))
        begin = partial(begin, initial=warm)
    # Readings of another baseline are not to replace those of the track's own.
    place = f"{track}/{section}" if section in built.instead else track
    base, loss = tune(place, {BASELINE: built.of(section).base}, results, 1)[BASELINE]
    if (below := results.data["unigram_entropy"] - loss) < LEARNED:
        raise WorkbenchError(f"track '{track}': the baseline ends {below:.2f} nats below word frequencies, and needs "
                             f"{LEARNED}; give it more --steps")  # fmt: skip
    arms, refused = arms_of(Track(base, built.methods), section)
    # As much reference time as the baseline takes: each arm is tuned at the steps that this gives it.
    plan = plan_race({BASELINE: base, **arms}, None, seeds, rates=rates, say=note)
    candidates = {name: _as_tuned(f"{place}/{name}", Recipe(**plan.arms[name]).with_(seed=TUNING_SEED), results)
                  for name in arms}  # fmt: skip
    ready = {BASELINE: base, **{name: found for name, (found, _) in tune(place, candidates, results, at_once).items()}}
    took = {name: compiling(f"{place}/{name}", recipe, results) for name, recipe in ready.items()
            if recipe.engine().mode.compiled}  # fmt: skip
    outcome = _raced(f"{track}/{section}", ready, plan.budget, seeds, results, begin, warm).wait_blocking()
    where = context("study")
    return {
        "measured": {"processor": where["hardware"]["processor"], "date": where["date"], "revision": where["revision"]},
        "race": outcome.race, "steps": int(built.base.budget.amount), "budget": outcome.budget, "seeds": outcome.seeds,
        "baseline_below_unigram": below, "recipes": {name: recipe.to_dict() for name, recipe in ready.items()},
        "definitions": definitions(built, section), "refused": refused,
        "shares": {name: arm["share"] for name, arm in outcome.arms.items()},
        "verdicts": outcome.verdicts, "runs": outcome.runs, "compilation": took,
        "with_compilation": {
            each["arm"]: with_compilation(each["speedup"], plan.shares[BASELINE].seconds, took[BASELINE],
                                          took[each["arm"]])
            for each in outcome.verdicts if took and each["speedup"]
        },
    }  # fmt: skip


def _as_tuned(key: str, recipe: Recipe, results: ResultsFile) -> Recipe:
    """Return a recipe with the steps at which it was tuned before, where another machine gives it nearly as many."""
    for name, run in results.data["runs"].items():
        if name.startswith(f"{key}/lr=") and run["budget"] != str(recipe.budget):
            before = recipe.with_(budget=run["budget"])
            if before.budget.unit == recipe.budget.unit and (
                abs(before.budget.amount / recipe.budget.amount - 1) <= SAME_STEPS
            ):
                return before
    return recipe


def _raced(
    key: str, arms: Mapping[str, Recipe], budget: str, seeds: int, results: ResultsFile, begin: Begin,
    warm: Mapping[int, str],
) -> Race:  # fmt: skip
    """Return the race of these very arms that an earlier start began, else a new one."""
    races = results.data.get("races", {})
    wanted: dict[str, Any] = {name: definition(recipe) for name, recipe in arms.items()}
    # By run: a results file holds no path of a machine.
    wanted |= {"initial": sorted(Path(path).parent.parent.name for path in warm.values())} if warm else {}
    if races.get(key, {}).get("arms") == wanted:
        # Begun on another machine, or deleted: what was tuned is known, the race begins anew.
        with contextlib.suppress(RunError):
            known = Race(races[key]["race"])
            if known.status not in ("failed", "cancelled"):
                return known
    found = begin(arms, budget, seeds, name=f"study {key.replace('/', ' ')}", say=note)
    assert isinstance(found, Race)  # a dry run alone gives a plan
    results.put(races={**races, key: {"race": found.id, "arms": wanted}})
    return found


def definitions(built: Track, section: str) -> dict[str, str]:
    """Return the untuned recipe of each arm of a section: another one is another method."""
    arms, _ = arms_of(built, section)
    before = f" after {definition(built.before)}" if built.before else ""
    base = built.of(section).base
    return {name: f"{definition(recipe)}{before}" for name, recipe in {BASELINE: base, **arms}.items()}


def missing(data: Mapping[str, Any]) -> list[str]:
    """Return methods of all tracks that have no verdict, or one of another recipe than today's."""
    found = []
    for track, (build, steps) in TRACKS.items():
        for section in build(steps).methods:
            kept = data.get("sections", {}).get(f"{track}/{section}", {})
            known = kept.get("definitions", {})
            for name, today in definitions(build(kept.get("steps", steps)), section).items():
                if known.get(name) != today:
                    why = "evidence of another recipe" if name in known else "no evidence"
                    found.append(f"{track}/{section}/{name}: {why}")
    return found


def lacking(data: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return :func:`missing`, the methods by track and section."""
    found: dict[str, list[str]] = {}
    for line in missing(data):
        place, _, name = line.partition(": ")[0].rpartition("/")
        if name != BASELINE:
            found.setdefault(place, []).append(name)
    return found


def measured(options: Options) -> dict[str, Any] | None:
    """Tune and race the sections that are named, and write the page after each."""
    results = options.results
    if options.check:
        if found := missing(results.data):
            raise TargetMissed(f"{len(found)} methods lack evidence:\n" + "\n".join(found))
        return None
    check_known("track", options.track, TRACKS)
    build, steps = TRACKS[options.track]
    built = build(options.steps or steps)
    for section in options.only:
        check_known("section", section, built.methods)
    with results.own():
        for section in options.only or built.methods:
            kept = section_of(options.track, built, section, results, seeds=options.seeds, at_once=options.at_once)
            results.put(sections={**results.data.get("sections", {}), f"{options.track}/{section}": kept})
            write_bytes(options.page, page(results.data, lacking(results.data)).encode())
    return {}


def shown(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of all sections, by section and method."""
    return {"shown": {name: rows(section) for name, section in result.get("sections", {}).items()}}
