"""``PATH=VALUE`` as people type it on the command line, in a fork's dialog and in notebooks. Standard library only."""

from __future__ import annotations

import json
from typing import Any

from workbench.errors import RecipeError


def assignment(text: str, example: str = "optimizer.lr=1e-3") -> tuple[str, Any]:
    """Path and value of a ``PATH=VALUE`` text.

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
        return path, read_json_text(value, path)
    except json.JSONDecodeError:
        return path, value.strip()  # plain text, as the kind of a choice


def read_json_text(text: str, where: str) -> Any:
    """The value of a JSON text that somebody typed, pasted or saved.

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
