"""Reading a recipe from text that people paste: JSON, or Python that is looked at and never executed.

Of Python, what makes a recipe is understood, and nothing else:

    import workbench as wb

    lr = 2e-3
    recipe = wb.presets.fast().with_(optimizer={"lr": lr}, budget="500 steps")
    recipe = recipe.with_assignments(["seed=3"])
    run = wb.launch(recipe)  # stands in many a cell; passed over

The text is parsed into a syntax tree whose nodes are matched one by one. Names stand for presets, ``Recipe`` and
literals of the text itself, so there is nothing that a hostile text could reach.
"""

from __future__ import annotations

import ast
import json
import operator
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from workbench import presets
from workbench.errors import RecipeError, unknown
from workbench.recipe import Recipe
from workbench.ui.text_problems import TextError, TextProblem, json_tree, placed

LONGEST = 200_000
"""Characters; recipes have some thousands, and the page waits for the answer."""
_LARGEST_POWER, _LARGEST = 64, 1e300


class Read(NamedTuple):
    """A recipe that was read, and the preset that its text starts from (None: from none, or from the defaults)."""

    recipe: Recipe
    preset: str | None = None


class _Name(NamedTuple):
    """Something outside of the text, by its dotted name: compared with the few that are known, never looked up."""

    path: str


class _Run(NamedTuple):
    """What ``launch`` and the like return: passed over, with everything that is done with it."""


_KNOWN = {
    "wb": _Name("workbench"),
    "workbench": _Name("workbench"),
    "presets": _Name("workbench.presets"),
    "Recipe": _Name("workbench.Recipe"),
}
_PASSED_OVER = {f"workbench.{name}" for name in ("launch", "Lab", "forecast", "race", "compare")}
_SAME_AS = {"workbench.recipe.Recipe": "workbench.Recipe", "workbench.runs.launch.launch": "workbench.launch"}
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
_HINTS = {"true": "write True", "false": "write False", "null": "write None"}


def read_json(text: str) -> Read:
    """The recipe of a JSON text.

    Raises:
        TextError: not JSON, or no recipe; each problem with the line it stands in.
    """
    _check_length(text)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise TextError([TextProblem(error.lineno, f"not JSON: {error.msg} (column {error.colno})")]) from None
    except RecursionError:
        raise TextError([TextProblem(1, "nested deeper than any recipe is")]) from None
    try:
        return Read(Recipe.from_json(text))
    except RecipeError as error:
        raise TextError(placed(error, json_tree(text))) from None


def read_python(text: str) -> Read:
    """The recipe that a Python text would build: the one called ``recipe``, else the last one in it.

    Raises:
        TextError: not Python, or something other than recipes and literals; each problem with its line.

    Example:
        >>> read_python("recipe = wb.presets.fast().with_(seed=2 + 1)").recipe.seed
        3
    """
    _check_length(text)
    try:
        with warnings.catch_warnings():
            # Of odd escapes in strings: nobody would see them.
            warnings.simplefilter("ignore")
            # As a cell may hold it: `await run.wait()` needs no function around it. Yields a tree, runs nothing.
            flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            tree = compile(text, "recipe", "exec", flags, dont_inherit=True)
    except SyntaxError as error:
        raise TextError([TextProblem(error.lineno or 1, f"not Python: {error.msg}")]) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise TextError([TextProblem(1, f"not Python: {error or 'nested deeper than any recipe is'}")]) from None
    try:
        return _Reader().read(tree)  # type: ignore[arg-type]
    except RecursionError:
        raise TextError([TextProblem(1, "nested deeper than any recipe is")]) from None


class _Reader:
    """Walks through the statements of one text."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = dict(_KNOWN)
        self._last: Read | None = None

    def read(self, tree: ast.Module) -> Read:
        for statement in tree.body:
            self._statement(statement)
        named = self._names.get("recipe")
        found = named if isinstance(named, Read) else self._last
        if found is None:
            line = tree.body[-1].end_lineno or 1 if tree.body else 1
            raise TextError([TextProblem(line, "no recipe here; begin with recipe = wb.presets.bert_tiny()")])
        return found

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                # Without `as`, `import a.b` binds a.
                self._names[alias.asname or alias.name.split(".")[0]] = _named(
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                self._names[alias.asname or alias.name] = _named(f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            self._names[node.targets[0].id] = self._value(node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            self._names[node.target.id] = self._value(node.value)
        elif isinstance(node, ast.Expr):
            self._value(node.value)
        elif not isinstance(node, ast.Pass):
            raise _failure(node, f"nothing is executed here: calls and literals make a recipe, not `{_word(node)}`")

    def _value(self, node: ast.expr) -> Any:
        for kind, read in self._readers.items():
            if isinstance(node, kind):
                return read(self, node)
        raise _failure(node, f"not a literal: `{_excerpt(node)}`; write the value itself")

    def _constant(self, node: ast.Constant) -> Any:
        if node.value is None or isinstance(node.value, (bool, int, float, str)):
            return node.value
        raise _failure(node, f"no knob takes `{_excerpt(node)}`")

    def _name(self, node: ast.Name) -> Any:
        if node.id not in self._names:
            hint = _HINTS.get(node.id, "only what this text itself defines is known; write the value itself")
            raise _failure(node, f"`{node.id}` is not known here: {hint}")
        return self._names[node.id]

    def _attribute(self, node: ast.Attribute) -> Any:
        value = self._value(node.value)
        if isinstance(value, _Name):
            return _named(f"{value.path}.{node.attr}")
        if isinstance(value, _Run):
            return value
        raise _failure(node, f"`{_excerpt(node)}` would be executed; write the value itself")

    def _dict(self, node: ast.Dict) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:  # {**other}
                inner = self._value(value)
                if not isinstance(inner, dict):
                    raise _failure(value, f"`**{_excerpt(value)}` is no dictionary")
                found |= inner
            else:
                name = self._value(key)
                if not isinstance(name, str):
                    raise _failure(key, f"knobs are named by strings, got {name!r}")
                found[name] = self._value(value)
        return found

    def _list(self, node: ast.List | ast.Tuple) -> list[Any]:
        return [self._value(each) for each in node.elts]

    def _unary(self, node: ast.UnaryOp) -> Any:
        value = self._number(node.operand)
        if isinstance(node.op, (ast.USub, ast.UAdd)):
            return -value if isinstance(node.op, ast.USub) else value
        raise _failure(node, f"not a number: `{_excerpt(node)}`")

    def _binary(self, node: ast.BinOp) -> Any:
        left, right = self._number(node.left), self._number(node.right)
        do = _OPERATORS.get(type(node.op))
        # A tower of powers would keep the kernel busy for ever.
        if do is None or (do is operator.pow and (abs(right) > _LARGEST_POWER or abs(left) > 1e9)):
            raise _failure(node, f"cannot be worked out here: `{_excerpt(node)}`; write the number itself")
        try:
            result = do(left, right)
        except ArithmeticError as error:
            raise _failure(node, f"{error}: `{_excerpt(node)}`") from None
        # The size keeps products of many from growing without end.
        if isinstance(result, complex) or abs(result) > _LARGEST:
            raise _failure(node, f"no number that a knob takes: `{_excerpt(node)}`")
        return result

    def _number(self, node: ast.expr) -> Any:
        value = self._value(node)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value
        raise _failure(node, f"not a number: `{_excerpt(node)}`")

    def _await(self, node: ast.Await) -> Any:
        return self._value(node.value)

    def _call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("with_", "with_assignments"):
            start = self._value(node.func.value)
            if not isinstance(start, Read):
                raise _failure(node, f"`{_excerpt(node.func.value)}` is no recipe")
            self._last = self._changed(start, node.func.attr, node)
            return self._last
        target = self._value(node.func)
        # What is given to a run stays unread: `run.fork(callback=...)` is none of ours.
        if isinstance(target, _Run):
            return target
        if not isinstance(target, _Name):
            raise _failure(node, f"`{_excerpt(node.func)}` cannot be called here")
        if target.path in _PASSED_OVER:
            recipes = [value for value in map(self._value, node.args) if isinstance(value, Read)]
            self._last = recipes[0] if recipes else self._last
            return _Run()
        self._last = self._made(target.path, node)
        return self._last

    def _changed(self, start: Read, how: str, node: ast.Call) -> Read:
        arguments, named = self._arguments(node)
        return Read(_built(lambda: getattr(start.recipe, how)(*arguments, **named), node), start.preset)

    def _made(self, path: str, node: ast.Call) -> Read:
        """What a call of a known name makes: a preset, or a recipe of its own."""
        arguments, named = self._arguments(node)
        if path == "workbench.Recipe":
            return Read(_built(lambda: Recipe(*arguments, **named), node))
        home, _, name = path.rpartition(".")
        if home != "workbench.presets":
            raise _failure(node, f"`{_excerpt(node.func)}` makes no recipe; write wb.presets.NAME() or wb.Recipe()")
        if name == "get" and len(arguments) == 1 and not named:
            name, arguments = arguments[0], []
        if name not in presets.names():
            raise _failure(node, unknown("preset", name, presets.names()))
        recipe = _built(lambda: getattr(presets, name)(*arguments, **named), node)
        # With arguments it is none of those that the drop-down offers.
        return Read(recipe, name if not arguments and not named else None)

    def _arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self._value(keyword.value)
            if keyword.arg is not None:
                named[keyword.arg] = value
            elif isinstance(value, dict):
                named |= value
            else:
                raise _failure(keyword.value, f"`**{_excerpt(keyword.value)}` is no dictionary")
        return [self._value(each) for each in node.args], named

    _readers: dict[Any, Callable[[_Reader, Any], Any]] = {  # noqa: RUF012  (a table of methods)
        ast.Constant: _constant,
        ast.Name: _name,
        ast.Attribute: _attribute,
        ast.Dict: _dict,
        (ast.List, ast.Tuple): _list,
        ast.UnaryOp: _unary,
        ast.BinOp: _binary,
        ast.Await: _await,
        ast.Call: _call,
    }


def _built(build: Callable[[], Recipe], node: ast.Call) -> Recipe:
    """Call one of our own functions with literals; what it objects to is placed in the text."""
    try:
        return build()
    except RecipeError as error:
        raise TextError(placed(error, node)) from None
    # Arguments that the function does not have, or of another form than it takes.
    except (TypeError, AttributeError) as error:
        raise TextError([TextProblem(node.lineno, f"{error}; in `{_excerpt(node)}`")]) from None


def _named(path: str) -> _Name:
    return _Name(_SAME_AS.get(path, path))


def _check_length(text: str) -> None:
    if len(text) > LONGEST:
        raise TextError([TextProblem(1, f"{len(text):,} characters; a recipe has at most {LONGEST:,}")])


def _word(node: ast.AST) -> str:
    words = {"FunctionDef": "def", "ClassDef": "class", "Assign": "several targets", "Delete": "del"}
    return words.get(type(node).__name__, type(node).__name__.removeprefix("Async").lower())


def _excerpt(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else text[:59] + "…"


def _failure(node: ast.AST, message: str) -> TextError:
    return TextError([TextProblem(getattr(node, "lineno", 1), message)])
