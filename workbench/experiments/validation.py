"""Checks of what a user asks of a race, a sweep or a tuning, before anything is prepared or launched."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from workbench.base.errors import RecipeError, check_known
from workbench.experiments.budget import check_clock, parse
from workbench.experiments.plan import Score
from workbench.launchers.queue.queue_folder import queue_here
from workbench.launchers.queue.settings import physical_cores
from workbench.telemetry.scored_text import OTHER_KINDS, OTHER_TEXT, ScoredText

if TYPE_CHECKING:
    from workbench.choices.data.tokens import PreparedData
    from workbench.recipes.recipe import Recipe

Log = Callable[[str], None]
START_SECONDS = 5.0
"""Seconds of a run beside its training: start-up, scoring, saving."""


def check_options(
    *, name: object, runs_dir: object, say: object, score: object, clock: str = "reference", budget: object = None
) -> Log:
    """Refuse options of a wrong type or value; returns a function that takes lines.

    Raises:
        RecipeError: the message names the option and what it takes.
    """
    legal = (
        ("name", name, isinstance(name, str), "a text"),
        ("runs_dir", runs_dir, isinstance(runs_dir, str | os.PathLike), "a folder's path"),
        ("say", say, callable(say), "a function that is called with each line, such as print"),
    )
    for argument, value, fits, takes in legal:
        if value is not None and not fits:
            raise RecipeError(f"{argument}: {value!r:.60} is not {takes}")
    check_known("score", score, get_args(Score), RecipeError)
    check_clock(clock)
    if budget is not None:
        parse(budget)
    return say if callable(say) else lambda line: None


def seeds_of(seeds: object, noun: str, first: int, fewest: int, most: int, hint: str = "") -> tuple[int, ...]:
    """Return the seeds asked for: a number of them, from ``first`` on, or a list.

    Args:
        noun: of the experiment, for the message. fewest, most: that it takes. hint: appended to a wrong number of them.

    Raises:
        RecipeError: neither a number nor whole numbers from 0 to 2**31 - 1, too few, too many, or one of them twice.
    """
    chosen: list[Any] = []
    if is_whole(seeds):
        # One too many is enough to refuse them.
        chosen = list(range(first, first + min(int(seeds), most + 1)))  # type: ignore[call-overload]
    elif isinstance(seeds, Collection) and not isinstance(seeds, str | bytes | Mapping):
        chosen = list(seeds)
    if (not is_whole(seeds) and not chosen) or not all(is_whole(each) and 0 <= each < 2**31 for each in chosen):
        raise RecipeError(f"seeds: {seeds!r:.60} is neither a number of seeds nor a list of them, each from 0 to "
                          "2**31 - 1; write seeds=6 or [10, 11], in the terminal --seeds 6 or 10,11")  # fmt: skip
    if not fewest <= len(chosen) <= most or len(set(chosen)) < len(chosen):
        raise RecipeError(f"seeds: a {noun} takes {fewest} to {most} different ones, got {seeds!r:.60}{hint}")
    return tuple(map(int, chosen))


def is_whole(value: object) -> bool:
    """Return True for a whole number, not for True and False."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Return True for a finite number, not for True and False."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def recipe_of(source: Recipe | str) -> Recipe:
    """Return a recipe: itself, or of a text such as ``fast``, ``recipe.json`` or ``fast:optimizer.lr=1e-3,depth=full``.

    Raises:
        RecipeError: no such preset or file, or a change that does not fit.
    """
    from workbench.recipes import presets
    from workbench.recipes.recipe import Recipe

    if isinstance(source, Recipe):
        return source.located()
    if not isinstance(source, str):
        raise RecipeError(f"give a recipe, a preset's name or a recipe file, got {source!r:.80}")
    start, _, changes = source.partition(":")
    path = Path(start).expanduser()
    recipe = Recipe.load(path) if path.suffix == ".json" or os.sep in start else presets.get(start)
    # At commas before the next PATH=, so that lists and objects stay whole.
    return (recipe.with_assignments(re.split(r",(?=[\w.]+=)", changes)) if changes else recipe).located()


def recipe_here(source: Recipe | str) -> Recipe:
    """Return :func:`recipe_of` where it is whole and this machine can train it.

    Raises:
        RecipeError: no recipe, one with objects of the user's, or one that cannot run here.
    """
    recipe = recipe_of(source)
    recipe.check_whole()
    recipe.check_here()
    return recipe


def same_text(recipes: Mapping[str, Recipe], score: str, say: Log) -> dict[str, PreparedData]:
    """Prepare the data of every recipe; all must be scored on the same text.

    Args:
        recipes: by what a message calls them, such as ``arm 'mine'``.
        score: ``nats`` or ``bits_per_byte``.

    Raises:
        RecipeError: the scores of two recipes do not compare. DataError: the text cannot be prepared.
    """
    from workbench.choices.data.prepare import prepare

    kinds = {recipe.objective.causal: f"{name} {recipe.objective.kind}" for name, recipe in recipes.items()}
    if len(kinds) > 1:
        raise RecipeError(f"scores of different kinds ({', '.join(kinds.values())}): {OTHER_KINDS}; "
                          "compare causal and masked recipes apart")  # fmt: skip
    # Once per text, and before the launch: several runs would prepare the same text at the same time.
    keys = {name: recipe.data.model_dump_json() for name, recipe in recipes.items()}
    ready = {key: prepare(data, say) for key, data in {keys[name]: recipes[name].data for name in recipes}.items()}
    first = next(iter(recipes))
    scored = {key: ScoredText.of(each.fingerprint) for key, each in ready.items()}
    for name in recipes:
        apart = scored[keys[first]].apart(scored[keys[name]])
        if apart == OTHER_TEXT:
            raise RecipeError(f"{first} and {name} {apart}; give both the same data and data.heldout_fraction")
        if apart and score == "nats":
            raise RecipeError(
                f"{first} and {name} {apart}; give both the same, or compare bits per byte (score='bits_per_byte')"
            )
    return {name: ready[key] for name, key in keys.items()}


def at_once(threads_of_runs: Iterable[int]) -> int:
    """Return how many runs train side by side: one on a GPU, else as many as the cores of the queue have threads for.

    Args:
        threads_of_runs: that each trains with; 0 on a GPU.
    """
    queue, threads = queue_here(), max(threads_of_runs)
    cores = min(os.cpu_count() or 1, physical_cores() if queue is None else queue.settings().capacity)
    return max(1, cores // threads) if threads else 1
