"""``PATH=VALUE`` as people type it on the command line, in a fork's dialog and in notebooks. Standard library only."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from workbench.base.errors import RecipeError


def assignment(text: str, example: str = "optimizer.lr=1e-3") -> tuple[str, Any]:
    """Return path and value of a ``PATH=VALUE`` text.

    Raises:
        RecipeError: no ``=`` in it, or a value that no knob takes.

    Example:
        >>> assignment("optimizer.lr=1e-3"), assignment("budget=400 steps")
        (('optimizer.lr', 0.001), ('budget', '400 steps'))
    """
    path, equals, value = text.partition("=")
    if not equals:
        raise RecipeError(f"{text[:80]!r} is not PATH=VALUE, for example {example}")
    path = path.strip()
    try:
        return path, read_json_text(plain_minus(value), path)
    except json.JSONDecodeError:
        return path, value.strip()  # plain text, as the kind of a choice


def plain_minus(typed: str) -> str:
    """Return a number whose minus is that of typesetters (U+2212) with that of a keyboard; any other text as it is.

    Example:
        >>> plain_minus("9e\N{MINUS SIGN}4"), plain_minus("a \N{MINUS SIGN} b") == "a \N{MINUS SIGN} b"
        ('9e-4', True)
    """
    plain = typed.replace("\N{MINUS SIGN}", "-")
    try:
        float(plain)
    except ValueError:
        return typed
    return plain


def assignments(given: object) -> list[tuple[str, Any]]:
    """Return path and value of each change that somebody asked for.

    Args:
        given: ``PATH=VALUE`` texts, one text of them that is taken apart as a shell does, or a mapping of
            values by path.

    Raises:
        RecipeError: it is none of these.

    Example:
        >>> assignments("seed=3 'budget=400 steps'"), assignments({"seed": 3})
        ([('seed', 3), ('budget', '400 steps')], [('seed', 3)])
    """
    if isinstance(given, Mapping) and all(isinstance(path, str) for path in given):
        return list(given.items())
    texts: list[Any]
    try:
        texts = (
            shlex.split(given) if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
        )
    except ValueError as error:
        raise RecipeError(f"changes {given!r:.80} cannot be taken apart: {error}") from None
    if isinstance(given, bytes | Mapping) or not all(isinstance(text, str) for text in texts):
        raise RecipeError(
            f"changes are a list of PATH=VALUE texts, such as ['optimizer.lr=1e-3'], or one text of them; got "
            f"{given!r:.80}; for no change []"
        )
    return [assignment(text) for text in texts]


def read_fields(text: str, what: str = "recipe") -> dict[str, Any]:
    """Return the fields of a recipe's JSON text.

    Args:
        what: what the messages call it.

    Raises:
        RecipeError: empty, not JSON, or no object.
    """
    if not text.strip():
        raise RecipeError(f"{what} is empty: not JSON; a recipe is a JSON object, as Recipe.save writes it")
    try:
        fields = read_json_text(text, what)
    except json.JSONDecodeError as error:
        raise RecipeError(
            f"{what} is not JSON: {error}; a recipe is a JSON object, as Recipe.save writes it and each run has one in "
            "recipe.json; text to train on is given with --text"
        ) from None
    if not isinstance(fields, dict):
        raise RecipeError(f"{what}: a recipe is a JSON object, got {type(fields).__name__}")
    return fields


def read_json_text(text: str, where: str) -> Any:
    """Return the value of a JSON text that somebody typed, pasted or saved.

    Raises:
        JSONDecodeError: not JSON.
        RecipeError: JSON that Python does not read: nested too deep, or a whole number of thousands of digits.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise RecipeError(f"{where}: not JSON that can be read: nested deeper than any recipe is") from None
    except ValueError:
        raise RecipeError(
            f"{where}: not JSON that can be read: a number with more digits than any knob takes"
        ) from None
