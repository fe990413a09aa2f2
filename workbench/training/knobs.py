"""The knobs of a running run: which there are, and the recipe after one was turned."""

from __future__ import annotations

from typing import Any

from workbench.changes import LENGTH, turnable
from workbench.choices.choice import BOUNDS, Choice
from workbench.errors import RunError, unknown
from workbench.recipe import Recipe


def turned(recipe: Recipe, path: str, value: Any, longest: int | None = None) -> Recipe:
    """The recipe with one knob turned.

    Args:
        recipe: in force.
        path: of the knob, for example ``optimizer.lr`` or ``optimizer.schedule.warmup``.
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
        raise RunError(unknown("knob of a running run", path, legal, hint))
    # Checked like a new recipe: what a launch would refuse, a run in training refuses too.
    changed = recipe.with_(**{path: value})
    built = recipe.data.longest if longest is None else longest
    if changed.data.longest > built:
        raise RunError(
            f"data.sequence_length: rows of {changed.data.longest} tokens do not fit the model of this run, which was "
            f"built for {built}; stay within that, or launch a changed recipe"
        )
    return changed


def settable(recipe: Recipe, longest: int | None = None) -> list[dict[str, Any]]:
    """What can be set while a run of this recipe trains, as plain data for pages that cannot read recipes.

    Args:
        recipe: in force.
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


def _described(choice: Choice, name: str, path: str) -> list[dict[str, Any]]:
    schema = type(choice).model_json_schema()["properties"][name]
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
