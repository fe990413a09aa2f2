"""Arguments of races and sweeps: one of a wrong type is refused by its name before anything is prepared."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping
from numbers import Integral, Real
from typing import Any

from workbench.base.errors import RecipeError


def check_arguments(*, name: object, runs_dir: object, say: object) -> None:
    """Refuse what is no name, no folder, or nothing to call.

    Raises:
        RecipeError: the message names the argument and what it takes.
    """
    legal = (
        ("name", name, isinstance(name, str), "a text"),
        ("runs_dir", runs_dir, isinstance(runs_dir, str | os.PathLike), "a folder's path"),
        ("say", say, callable(say), "a function that is called with each line, such as print"),
    )
    for argument, value, fits, takes in legal:
        if value is not None and not fits:
            raise RecipeError(f"{argument}: {value!r:.60} is not {takes}")


def seeds_of(seeds: object, noun: str, first: int, fewest: int, most: int, hint: str = "") -> tuple[int, ...]:
    """Seeds as asked: a number of them, from ``first`` on, or which ones.

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
    """Whether it is a whole number; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether it is a finite number; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
