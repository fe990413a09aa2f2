"""Changes that a recipe still takes: while a run trains, and in a fork from a checkpoint."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from workbench.base.errors import RecipeError, RunError, unknown
from workbench.base.fields import flatten
from workbench.base.text import many
from workbench.choices.choice import Choice
from workbench.choices.knob import BOUNDS, MOVES
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.choices.progress import Budget, Progress
from workbench.recipes.recipe import Recipe

LENGTH = "data.sequence_length"
FAR = 10.0
_STEADY = "depth (to a method without stages)"


def turnable(recipe: Recipe) -> list[str]:
    """Return paths of the knobs that are read anew at every step; all others are built into the model or the optimizer.

    A depth method is asked for a plan at every step, an optimizer choice for rates, decay and clipping, and every
    scheduled knob for its value.
    """
    # All of them where there are no stages: nothing of such a method is built in. A stage once begun cannot be undone.
    steady = len(recipe.depth.starts()) == 1
    paths = [f"depth.{name}" for name in type(recipe.depth).model_fields if name != "kind" and steady]
    paths += [f"optimizer.{name}" for name in OptimizerChoice.model_fields if name != "kind"]
    for axis in (recipe.data, recipe.objective, recipe.optimizer):
        paths += [f"{axis.axis}.{name}" for name, field in type(axis).model_fields.items() if MOVES in field.metadata]
    # A rule that moves the batch itself reads this knob at the very first step only.
    return sorted(set(paths) - (set() if recipe.data.batch_rule.follows_schedule else {"data.batch_size"}))


def turned(recipe: Recipe, path: str, value: Any, longest: int | None = None) -> Recipe:
    """Return the recipe with one knob turned.

    Args:
        value: a number, or a schedule as JSON.
        longest: row length in tokens that the run's model was built for; None for that of ``recipe``.

    Raises:
        RunError: this knob cannot be turned while the run trains; the message lists those that can. Or rows would
            become longer than the model was built for.
        RecipeError: the value is not legal.
    """
    legal = turnable(recipe)
    if not any(path == knob or path.startswith(knob + ".") for knob in legal):
        hint = "Others are built into the model or the optimizer: stop the run and launch a changed recipe"
        raise RunError(unknown("", path, legal, hint, noun="knob of a running run"))
    # Checked like a new recipe: what a launch would refuse, a run in training refuses too.
    changed = recipe.with_(**{path: value})
    built = recipe.data.longest if longest is None else longest
    if changed.data.longest > built:
        raise RunError(
            f"data.sequence_length: rows of {changed.data.longest} tokens do not fit the model of this run, which was "
            f"built for {built}; stay within that, or launch a changed recipe"
        )
    return changed


def jumps(before: Recipe, after: Recipe, progress: Progress) -> list[str]:
    """Return numbers that a change takes to :data:`FAR` times what they are at ``progress``,
    or below one in as many.
    """
    found = []
    now, then = _numbers(before, progress), _numbers(after, progress)
    for path in now.keys() & then.keys():
        old, new = abs(now[path]), abs(then[path])
        # To or from nothing, which is how something is switched off or on.
        if not (old and new and math.isfinite(old * new)) or 1 / FAR < new / old < FAR:
            continue
        times = f"{new / old:,.0f} times" if new > old else f"a {old / new:,.0f}th of"
        found.append(f"{path} becomes {times} its present value, {now[path]:.4g}")
    return sorted(found)


def settable(recipe: Recipe, longest: int | None = None) -> list[dict[str, Any]]:
    """Return what can be set while a run of this recipe trains, as plain data for pages that cannot read recipes.

    Args:
        longest: row length in tokens that the run's model was built for; None for that of ``recipe``.

    Returns:
        One mapping per knob, those of a schedule after the knob that follows it: ``path``; ``value``, present, as JSON;
        ``help``; ``unit``; ``scale``, ``linear`` or ``log``; ``types``, of ``number``, ``integer``, ``boolean``,
        ``string``, ``array``, ``null``, ``schedule``; ``options``, where only these values are legal; bounds in JSON
        Schema's words, where there are any. They are what the form of a recipe shows; what combinations forbid besides,
        only :func:`turned` tells.
    """
    found: list[dict[str, Any]] = []
    for path in turnable(recipe):
        axis, _, name = path.partition(".")
        described = _described(getattr(recipe, axis), name, path)
        if path == LENGTH:
            described[0]["maximum"] = recipe.data.longest if longest is None else longest
        found += described
    return found


@dataclass(frozen=True)
class Fork:
    """The way in which a run goes on from a checkpoint of another.

    Attributes:
        recipe: of the new run.
        overrides: knobs that stay turned beyond ``recipe``, by path: rows shorter than the model was built for.
        diff: ``{path: (before, after)}`` against what was in force at the checkpoint.
        fresh: knobs of the optimizer whose change makes it begin without state; empty when its state is taken over.
    """

    recipe: Recipe
    overrides: dict[str, Any] = field(default_factory=dict)
    diff: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    fresh: tuple[str, ...] = ()


def belongs_to_checkpoint(present: Recipe, wanted: Recipe) -> list[str]:
    """Return paths of what differs and no fork can change."""
    return list(_outside(present.diff(wanted), _forkable(present, wanted)))


def fork(launched: Recipe, saved: Mapping[str, Any], changes: Mapping[str, Any], called: str = "") -> Fork:
    """Return a fork: what goes on from a checkpoint under some changes.

    What the checkpoint's tensors and its place in the data belong to stays: model, vocabulary, documents, the method
    that labels tokens, a depth method in stages. Schedules are shapes over the whole budget: under a longer one they
    go on from the share that the steps, tokens or seconds so far are of it.

    Args:
        launched: recipe of the run that saved the checkpoint.
        saved: the checkpoint's ``state.json``: ``step, tokens, seconds``, the knobs turned until then, the stage.
        changes: as for :meth:`Recipe.with_`; a budget as text keeps how often is evaluated and saved.
        called: what people call that run, where this is not its recipe's name.

    Raises:
        RecipeError: a change that a fork cannot make (those it can are listed), a value that is not legal, a budget
            that is spent already or would undo a stage.
    """
    present = launched.with_(**saved.get("overrides", {}))
    step = int(saved["step"])
    wanted = present.with_(**{"name": f"{(called or present.name)[:60]} fork {step}", **changes})
    diff = present.diff(wanted)
    if refused := belongs_to_checkpoint(present, wanted):
        legal = [_STEADY if path == "depth" else path for path in _forkable(present, present)]
        raise RecipeError(
            f"a fork cannot change {', '.join(refused)}: the weights, the vocabulary and the place in the data of the "
            f"checkpoint belong to it. It can change {', '.join(legal)}; for anything else launch a changed recipe "
            "as a run of its own"
        )
    _check_progress(wanted, saved)
    fresh = tuple(_outside((path for path in diff if path.startswith("optimizer.")), turnable(wanted)))
    recipe, overrides = _as_built(launched, wanted)
    return Fork(recipe, overrides, diff, fresh)


def _numbers(recipe: Recipe, progress: Progress) -> dict[str, float]:
    """Return the knobs that are numbers, by path; those that may move as they are at ``progress``."""
    axes = (recipe.data, recipe.objective, recipe.depth, recipe.optimizer)
    moving = {f"{axis.axis}.{path}": value for axis in axes for path, value in axis.scheduled_values(progress).items()}
    own = tuple(f"{path}." for path in moving)
    fixed = {
        path: float(value)
        for path, value in flatten(recipe.to_dict()).items()
        # A schedule's own knobs are in its value.
        if isinstance(value, int | float) and not isinstance(value, bool) and not path.startswith(own)
    }
    return fixed | moving


def _forkable(present: Recipe, wanted: Recipe) -> list[str]:
    """Return paths (of knobs, or of all below) that may differ between a checkpoint's recipe and a fork's."""
    paths = {"name", "notes", "seed", "budget", "optimizer", "execution", "data.batch_rule"}
    # Both: a knob of another kind of depth method or batch rule appears in one of them only.
    paths |= {path for recipe in (present, wanted) for path in turnable(recipe)}
    # Without stages the model is the same under every method, and the plan is asked for anew at every step.
    if len(present.depth.starts()) == len(wanted.depth.starts()) == 1:
        paths.add("depth")
    return sorted(path for path in paths if not any(path.startswith(f"{other}.") for other in paths))


def _outside(paths: Iterable[str], legal: Iterable[str]) -> list[str]:
    """Return those of ``paths`` that are neither in ``legal`` nor below it; of another kind, not its knobs."""
    found = [path for path in paths if not any(path == each or path.startswith(f"{each}.") for each in legal)]
    kinds = [path.removesuffix("kind") for path in found if path.endswith(".kind")]
    return [path for path in found if path.endswith(".kind") or not path.startswith(tuple(kinds))]


def _check_progress(wanted: Recipe, saved: Mapping[str, Any]) -> None:
    budget: Budget = wanted.budget
    at = Progress(int(saved["step"]), int(saved["tokens"]), float(saved["seconds"]), budget)
    # Checkpoints from before there were stages are of models that never grow.
    stage = int((saved.get("growth") or {}).get("stage", 0))
    if at.done:
        raise RecipeError(
            f"budget: {budget} {'is' if budget.amount == 1 else 'are'} spent already: the checkpoint stands at "
            f"{many(at.step, 'step')}, {at.tokens:,} tokens, "
            f"{at.seconds:.1f} seconds, and these count; {_larger(wanted, at, stage)}"
        )
    left, per_step = budget.amount - at.seconds, at.seconds / max(at.step, 1)
    # A step that has begun is taken whole: the fork would end after it, above its budget.
    if budget.unit == "seconds" and left < per_step:
        raise RecipeError(
            f"budget: {left:.2g} of {budget} are left at step {at.step:,}, and a step takes {per_step:.2g}; "
            f"{_larger(wanted, at, stage)}"
        )
    due = wanted.depth.stage(wanted.architecture.layers, at)
    if due < stage:
        raise RecipeError(
            f"budget: {budget} would put the run back into stage {due + 1} of depth '{wanted.depth.kind}', and the "
            f"model of the checkpoint is in stage {stage + 1}; give a smaller budget, or an earlier checkpoint"
        )


def _larger(wanted: Recipe, at: Progress, stage: int) -> str:
    """Return what to do where too little of a budget is left, with one that a fork of a model in ``stage`` may have."""
    budget, spent = wanted.budget, at.amount(wanted.budget.unit)
    # What was asked for, on top of what is spent; less of it where that would undo a stage.
    for more in (budget.amount, spent / 10, spent / 100):
        steps = max(more, 2 * spent / max(at.step, 1))
        larger = budget.model_copy(update={"amount": float(math.ceil(spent + steps))})
        if wanted.depth.stage(wanted.architecture.layers, replace(at, budget=larger)) >= stage:
            return f"give the fork a larger budget, as '{larger}', or an earlier checkpoint"
    return "give the fork an earlier checkpoint"


def _as_built(launched: Recipe, wanted: Recipe) -> tuple[Recipe, dict[str, Any]]:
    """Return ``wanted`` with the longest row that the checkpoint's model was built for;
    shorter rows as a turned knob.
    """
    built, longest = launched.data.longest, wanted.data.longest
    if longest > built:
        raise RecipeError(
            f"{LENGTH}: rows of {longest} tokens do not fit the model of the checkpoint, which was built for {built}; "
            "stay within that, or launch a changed recipe as a run of its own"
        )
    if longest == built:
        return wanted, {}
    lengths = [recipe.to_dict()["data"]["sequence_length"] for recipe in (launched, wanted)]
    return wanted.with_(**{LENGTH: lengths[0]}), {LENGTH: lengths[1]}


@functools.cache
def _knobs(kind: type[Choice]) -> Mapping[str, Any]:
    """Return JSON Schema of each knob of a choice: to make it takes a hundred times as long as to look one up."""
    return MappingProxyType(kind.model_json_schema()["properties"])


def _described(choice: Choice, name: str, path: str) -> list[dict[str, Any]]:
    schema = _knobs(type(choice))[name]
    value = getattr(choice, name)
    arms = schema.get("anyOf", [schema])
    options = [option for arm in arms for option in ([arm["const"]] if "const" in arm else arm.get("enum", []))]
    knob = {
        "path": path,
        "value": choice.model_dump(mode="json")[name],
        "help": schema.get("description", ""),
        "unit": schema.get("unit", ""),
        "scale": schema.get("scale", "linear"),
        "types": [arm.get("type", "schedule" if "$ref" in arm else "string") for arm in arms],
        **({"options": options} if options else {}),
        # Of a knob that moves they stand beside its arms, of others within.
        **{word: bound for part in (*arms, schema) for word, bound in part.items() if word in BOUNDS},
    }
    inner = type(value).model_fields if isinstance(value, Choice) else {}
    return [knob, *(each for part in inner if part != "kind" for each in _described(value, part, f"{path}.{part}"))]
