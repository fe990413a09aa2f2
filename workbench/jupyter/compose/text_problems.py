"""Find a recipe's problems in its text: from the path of a knob to the line that sets it."""

from __future__ import annotations

import ast
import warnings
from typing import NamedTuple

from workbench.base.errors import RecipeError


class TextProblem(NamedTuple):
    """A problem of a text: ``line`` counts from 1."""

    line: int
    message: str


class TextError(RecipeError):
    """A text that holds no recipe; ``problems`` says where and why."""

    def __init__(self, problems: list[TextProblem]) -> None:
        super().__init__("\n".join(f"line {problem.line}: {problem.message}" for problem in problems))
        self.problems = problems


def placed(error: RecipeError, node: ast.AST | None) -> list[TextProblem]:
    """Return each line of a recipe's complaint, with the line of the text that its path leads to."""
    found = []
    for complaint in str(error).splitlines():
        path, separator, _ = complaint.partition(": ")
        named = bool(separator) and " " not in path
        found.append(TextProblem(_line_of(node, path.split(".") if named else []), complaint))
    return found


def _line_of(node: ast.AST | None, parts: list[str]) -> int:
    """Return the line of the deepest key of ``parts`` that stands in nested dictionaries."""
    line = getattr(node, "lineno", 1)
    for key, where, value in _entries(node):
        steps = key.split(".")
        if parts[: len(steps)] == steps:
            return max(where, _line_of(value, parts[len(steps) :])) if _entries(value) else where
    return line


def _entries(node: ast.AST | None) -> list[tuple[str, int, ast.AST]]:
    """Return (key, line, value) of a dictionary."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return [(str(k.value), k.lineno, value) for k, value in pairs if isinstance(k, ast.Constant)]
    return []


def json_tree(text: str) -> ast.AST | None:
    """Return the tree of a JSON text, for its lines alone: to Python's parser it is an expression."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # In brackets, where leading blanks mean nothing.
            return ast.parse(f"({text}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
