"""The default space of a tuning: by axis, the most valuable first, as far as the recipe has it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from workbench.base.errors import RecipeError, check_known
from workbench.base.fields import at

AXES = ("rate", "architecture", "depth", "optimizer", "data", "schedule")
"""In the order in which they are searched: rate and warm-up alone are worth more than most methods (0.8 nats for
``fast`` at 600 steps between a rate of 3e-3 and 1e-3), and methods compare fairly only at a rate that suits them."""
_TEXT = ("data", "data.kind")


def space_asked(axes: Mapping[str, Any] | Collection[str] | None, recipe: Any) -> dict[str, Any]:
    """Return the space of a tuning: the user's own, or that of some axes, or of all.

    Args:
        axes: values or a range by dotted path, as a sweep takes them; names of :data:`AXES`; or None.

    Raises:
        RecipeError: nothing, an unknown axis, or a path that a tuning may not change.
    """
    if isinstance(axes, Mapping):
        for path in map(str, axes):
            if path in _TEXT or path.startswith("data.text"):
                raise RecipeError(f"{path}: a tuning compares on one text; give each corpus a tuning of its own")
            if path.split(".")[0] == "budget":
                raise RecipeError(f"{path}: every run of a tuning has one budget; give it as each='60 s' (`--each`)")
        if axes:
            return dict(axes)
    elif axes is None:
        axes = AXES
    elif isinstance(axes, str) or not isinstance(axes, Collection):
        axes = (axes,)  # type: ignore[assignment]
    if not axes:
        raise RecipeError(f"axes: there is nothing to tune; name some of {', '.join(AXES)}, or give values by path: "
                          "{'optimizer.lr': '1e-4..1e-2', 'depth.kind': ['full', 'progressive_drop']}")  # fmt: skip
    for axis in axes:
        check_known("axes", axis, AXES, RecipeError, "values by path work, too: {'optimizer.lr': '1e-4..1e-2'}")
    return {path: values for axis in AXES if axis in axes for path, values in _legal(_wanted(axis, recipe), recipe)}


def _wanted(axis: str, recipe: Any) -> dict[str, Any]:
    fields = recipe.to_dict()

    def number(path: str) -> Any:
        found = at(fields, path)
        return found if isinstance(found, int | float) and not isinstance(found, bool) else 0

    rate, layers, width, rows = map(number, (
        "optimizer.lr", "architecture.layers", "architecture.width", "data.batch_size"))  # fmt: skip
    wanted: dict[str, dict[str, Any]] = {
        "rate": {
            "optimizer.lr": f"{rate / 32:.3g}..{min(rate * 32, 100):.3g}" if rate else None,
            # Shares of the budget; of schedules that count steps or tokens nobody knows what is usual.
            "optimizer.schedule.warmup": [0.02, 0.05, 0.1, 0.2] if number("optimizer.schedule.warmup") <= 1 else None,
        },
        "architecture": {
            "architecture.layers": [layers // 2, layers, layers * 2],
            "architecture.width": [width // 2, width, width * 2],
            "architecture.ffn": ["relu2", "gelu", "swiglu"],
            "architecture.positions": ["rope", "alibi", "learned"],
        },
        "depth": {"depth.kind": ["full", "stacking", "progressive_drop"]},
        "optimizer": {"optimizer.kind": ["adamw", "lion", "lans", "muon"], "optimizer.weight_decay": [0.0, 0.01, 0.1]},
        "data": {"data.batch_size": f"{max(1, rows // 8)}..{rows * 8}" if rows else None},
        "schedule": {"optimizer.schedule.hold": [0.0, 0.3, 0.6]},
    }
    return wanted[axis]


def _legal(wanted: Mapping[str, Any], recipe: Any) -> list[tuple[str, Any]]:
    """Keep what the recipe can take; ranges whole, lists without values that do not fit."""
    found: list[tuple[str, Any]] = []
    for path, values in wanted.items():
        if isinstance(values, str):
            found.append((path, values))
        fits = [value for value in values if _fits(recipe, path, value)] if isinstance(values, list) else []
        # In order and once: halves of small numbers meet.
        fits = list(dict.fromkeys(fits))
        if len(fits) > 1:
            found.append((path, fits))
    return found


def _fits(recipe: Any, path: str, value: Any) -> bool:
    parent, _, name = path.rpartition(".")
    owner = at(recipe.to_dict(), parent)
    if not isinstance(owner, dict) or name not in owner:
        return False
    try:
        recipe.edited([(path, value)])
    except RecipeError:
        return False
    return True
