"""Reading a recipe from text that people paste: JSON, or the Python that the Lab shows. Nothing is executed.

Of Python, this form is understood, with any number of changes, and nothing else:

    import workbench as wb

    recipe = wb.presets.fast().with_(optimizer={"lr": 2e-3}, budget="500 steps")
    recipe = recipe.with_assignments(["seed=3"])
    run = wb.launch(recipe)  # says which recipe is meant; imports, and what is done with the run, are passed over

Every value is a literal. The text, the number of its parts and the number of changes are bounded, so that no text keeps
the kernel busy.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from workbench.base.assignments import read_json_text
from workbench.base.errors import RecipeError, unknown
from workbench.choices.data.tuning_text import on_own_text
from workbench.jupyter.compose.text_problems import TextError, TextProblem, json_tree, placed
from workbench.recipes import presets
from workbench.recipes.recipe import Recipe

LONGEST = 200_000
"""Characters; recipes have some thousands, and the page waits for the answer."""
_MOST_NODES, _MOST_CALLS = 20_000, 50
_PRESETS, _RECIPE = ("", "presets", "wb.presets", "workbench.presets"), ("Recipe", "wb.Recipe", "workbench.Recipe")
_LAUNCH = ("launch", "wb.launch", "workbench.launch", "Lab", "wb.Lab", "workbench.Lab")
_HINTS = {"true": "write True", "false": "write False", "null": "write None"}


class Read(NamedTuple):
    """A recipe that was read, and the preset that its text starts from (None: from none, or from the defaults)."""

    recipe: Recipe
    preset: str | None = None


def read_json(text: str) -> Read:
    """The recipe of a JSON text.

    Raises:
        TextError: not JSON, or no recipe; each problem with the line it stands in.
    """
    _check_length(text)
    try:
        read_json_text(text, "recipe")
        recipe = Recipe.from_json(text)
        recipe.check_whole()
        return Read(on_own_text(recipe))
    except json.JSONDecodeError as error:
        raise TextError([TextProblem(error.lineno, f"not JSON: {error.msg} (column {error.colno})")]) from None
    except RecipeError as error:
        raise TextError(placed(error, json_tree(text))) from None


def read_python(text: str) -> Read:
    """The recipe that a Python text would launch; of a text that launches none, the last one in it.

    Raises:
        TextError: not Python, or something other than recipes and literals; each problem with its line.

    Example:
        >>> read_python("recipe = wb.presets.fast().with_(seed=3)").recipe.seed
        3
    """
    tree = _parsed(text)
    recipes: dict[str, Read] = {}
    last: Read | None = None
    launched: Read | None = None
    runs: set[str] = set()
    for statement in tree.body:
        name, value = _assigned(statement)
        if value is not None and _root(value) in runs:
            continue
        if launches := isinstance(value, ast.Call) and _dotted(value.func) in _LAUNCH:
            value = value.args[0] if value.args else None
        if value is None or isinstance(value, ast.Constant):
            continue
        last = _recipe(value, recipes)
        if not launches:
            recipes[name] = last
            continue
        runs.add(name)
        if launched is not None and launched.recipe != last.recipe:
            raise _failure(statement, "a line above launches another recipe, and the forms hold one; leave one out")
        launched = last
    if (found := launched or last) is None:
        line = tree.body[-1].end_lineno or 1 if tree.body else 1
        raise TextError([TextProblem(line, "no recipe here; begin with recipe = wb.presets.bert_tiny()")])
    return found


def _parsed(text: str) -> ast.Module:
    _check_length(text)
    try:
        with warnings.catch_warnings():
            # Of odd escapes in strings: nobody would see them.
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        nodes = list(ast.walk(tree))
    except SyntaxError as error:
        raise TextError([TextProblem(error.lineno or 1, f"not Python: {error.msg}")]) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise TextError([TextProblem(1, f"not Python: {error or 'nested deeper than any recipe is'}")]) from None
    calls = sum(isinstance(node, ast.Call) for node in nodes)
    if len(nodes) > _MOST_NODES or calls > _MOST_CALLS:
        raise TextError([TextProblem(1, f"{calls:,} calls and {len(nodes):,} parts; no recipe takes more than "
                                        f"{_MOST_CALLS} and {_MOST_NODES:,}")])  # fmt: skip
    return tree


def _assigned(node: ast.stmt) -> tuple[str, ast.expr | None]:
    """Name and value of an assignment, the value alone of an expression, nothing of an import."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return "", None
    if isinstance(node, ast.Expr):
        return "", node.value
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, node.value
    raise _failure(node, "nothing is executed here: a recipe is read as recipe = wb.presets.NAME().with_(...)")


def _recipe(node: ast.expr, recipes: dict[str, Read]) -> Read:
    if isinstance(node, ast.Name) and node.id in recipes:
        return recipes[node.id]
    if not isinstance(node, ast.Call):
        raise _failure(node, f"`{_excerpt(node)}` is no recipe; only what this text itself composes is known")
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("with_", "with_assignments"):
        start, change = _recipe(node.func.value, recipes), node.func.attr
        positional, named = _arguments(node)
        return Read(_built(lambda: getattr(start.recipe, change)(*positional, **named), node), start.preset)
    path = _dotted(node.func)
    positional, named = _arguments(node)
    if path in _RECIPE:
        return Read(_built(lambda: Recipe(*positional, **named), node))
    home, _, name = path.rpartition(".")
    if path and home in _PRESETS:
        if name == "get" and len(positional) == 1 and not named:
            name, positional = str(positional[0]), []
        if name in presets.names():
            recipe = _built(lambda: getattr(presets, name)(*positional, **named), node)
            # With arguments it is none of those that the drop-down offers.
            return Read(recipe, None if positional or named else name)
        if home:
            raise _failure(node, unknown("preset", name, presets.names()))
    raise _failure(node, f"`{_excerpt(node.func)}` makes no recipe; write wb.presets.NAME() or wb.Recipe()")


def _dotted(node: ast.expr) -> str:
    """``wb.presets.fast`` of that expression; empty of any other."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _root(node: ast.expr) -> str:
    """``run`` of ``run.wait()["loss"]``; empty where no name stands in front."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript | ast.Await):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _arguments(node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
    named: dict[str, Any] = {}
    for keyword in node.keywords:
        value = _literal(keyword.value)
        if keyword.arg is None and not isinstance(value, dict):
            raise _failure(keyword.value, f"`**{_excerpt(keyword.value)}` is no dictionary")
        named |= value if keyword.arg is None else {keyword.arg: value}
    return [_literal(each) for each in node.args], named


def _literal(node: ast.expr) -> Any:
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            hint = _HINTS.get(part.id, "write the value itself")
            raise _failure(part, f"`{part.id}` is not known here: {hint}")
        if isinstance(part, ast.Constant) and not isinstance(part.value, str | int | float | None):
            raise _failure(part, f"no knob takes `{_excerpt(part)}`")
        if isinstance(part, ast.Dict) and not all(
            isinstance(key, ast.Constant) and isinstance(key.value, str) for key in part.keys
        ):
            raise _failure(part, "knobs are named by strings")
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        raise _failure(node, f"not a literal: `{_excerpt(node)}`; write the value itself") from None


def _built(build: Callable[[], Recipe], node: ast.Call) -> Recipe:
    """Call one of our own functions with literals; what it objects to is placed in the text."""
    try:
        return build()
    except RecipeError as error:
        raise TextError(placed(error, node)) from None
    # Arguments that the function does not have, or of another form than it takes.
    except (TypeError, AttributeError) as error:
        raise TextError([TextProblem(node.lineno, f"{error}; in `{_excerpt(node)}`")]) from None


def _check_length(text: str) -> None:
    if len(text) > LONGEST:
        raise TextError([TextProblem(1, f"{len(text):,} characters; a recipe has at most {LONGEST:,}")])


def _excerpt(node: ast.AST) -> str:
    try:
        text = " ".join(ast.unparse(node).split())
    # Deep, or with a number of thousands of digits.
    except (RecursionError, ValueError):
        return "..."
    return text if len(text) <= 60 else text[:59] + "…"


def _failure(node: ast.AST, message: str) -> TextError:
    return TextError([TextProblem(getattr(node, "lineno", 1), message)])
