"""Who may import whom, what stays light, how large things may grow: the house's rules, read from the source."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import workbench
from workbench.choices.choice import registry
from workbench.choices.execution import Execution

ROOT = Path(workbench.__file__).parent
FILES = sorted(p for p in ROOT.rglob("*.py") if "node_modules" not in p.parts)

# The floors of the house from the ground up. A part imports what stands before it in this list, and itself.
LAYERS = [
    "base", "telemetry", "ops", "choices", "recipes", "store", "bridges", "training", "seen", "transformers",
    "models", "scoring", "forecasting", "autotune", "launchers", "client", "accelerated", "plots",
    "experiments", "lessons", "workshop", "jupyter", "bench", "cli", "ui", "__main__",
]  # fmt: skip

# They follow runs that any process trains, in kernels and servers where torch must not be loaded.
WATCHERS = tuple(
    f"workbench.{part}"
    for part in ("store", "bridges", "launchers", "client", "plots", "jupyter.feed", "jupyter.server")
)
TRAINERS = tuple(
    f"workbench.{part}" for part in ("training", "seen", "transformers", "models", "scoring", "forecasting", "autotune")
)


def module_name(path: Path) -> str:
    """Dotted name of a source file."""
    parts = ("workbench", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def syntax_tree(path: Path) -> ast.Module:
    """A source file, parsed once for all rules."""
    return ast.parse(path.read_text(encoding="utf-8"))


class Import(NamedTuple):
    """An import of a file: a dotted name, whether inside a function, whether for type checkers only."""

    name: str
    lazy: bool
    typing: bool


@cache
def found_imports(path: Path) -> list[Import]:
    """Every import of a file."""
    found: list[Import] = []
    todo: list[tuple[ast.AST, bool, bool]] = [(node, False, False) for node in syntax_tree(path).body]
    while todo:
        node, lazy, typing = todo.pop()
        if isinstance(node, ast.Import):
            found += (Import(alias.name, lazy, typing) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += (Import(name if name in MODULES else node.module, lazy, typing) for name in names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += ((child, lazy, True) for child in node.body)
            todo += ((child, lazy, typing) for child in node.orelse)
        else:
            inside = lazy or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            todo += ((child, inside, typing) for child in ast.iter_child_nodes(node))
    return found


def imports(path: Path, *, lazy: bool = True, typing: bool = False) -> list[str]:
    """Dotted names a file imports.

    Args:
        path: of the file.
        lazy: those inside functions, too, not only those at import time.
        typing: those for type checkers only, too.
    """
    return [each.name for each in found_imports(path) if (lazy or not each.lazy) and (typing or not each.typing)]


MODULES = {module_name(path): path for path in FILES}


def layer_of(module: str) -> int:
    """Return the place in LAYERS of a dotted name; 0 for the package itself, which holds only names of others."""
    part = module.split(".")[1] if "." in module else LAYERS[0]
    assert part in LAYERS, f"{module} stands in no layer: add 'workbench.{part}' to LAYERS, above what it imports"
    return LAYERS.index(part)


def none_of(violations: list[str]) -> None:
    """One test per rule that names every violation: a test per rule and module, 1,200 of them, took ten seconds."""
    assert not violations, "\n" + "\n".join(violations)


def test_imports_point_down() -> None:
    assert len(MODULES) > 200
    none_of([
        f"{module} imports {name}, which stands above it"
        for module in sorted(MODULES)
        for name in imports(MODULES[module])
        if module != "workbench" and name in MODULES and layer_of(name) > layer_of(module)
    ])  # fmt: skip


def test_only_the_page_imports_jupyter() -> None:
    jupyter = {"ipywidgets", "anywidget", "IPython", "jupyterlab", "jupyter_core", "jupyter_server", "ipykernel"}
    none_of([
        f"{module} imports {name}"
        for module in sorted(MODULES)
        if not module.startswith("workbench.jupyter")
        for name in imports(MODULES[module], lazy=False)
        if name.split(".")[0] in jupyter
    ])  # fmt: skip


def test_watchers_import_no_torch() -> None:
    """Watching must not need the trainer's libraries."""
    none_of([
        f"{module} imports {name}"
        for module in sorted(MODULES)
        if module.startswith(WATCHERS)
        for name in imports(MODULES[module])
        if name.split(".")[0] in ("torch", "transformers") or name.startswith(TRAINERS)
    ])  # fmt: skip


def test_no_import_cycles() -> None:
    """None at import time, none through imports inside functions, none through those that only annotations need."""
    graph = {m: {n for n in imports(path, typing=True) if n in MODULES and n != m} for m, path in MODULES.items()}
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join([*trail[trail.index(module) :], module])
        if module not in done:
            for other in graph[module]:
                visit(other, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def peeks(tree: ast.Module, knobs: set[str], kinds: set[str]) -> list[str]:
    """Return where a file reads an engine's own knobs from an execution choice, or compares with an engine's name."""
    found: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner, names = node.value, {node.attr} & knobs
        elif isinstance(node, ast.Subscript):
            owner, names = node.value, constants(node.slice) & knobs
        elif isinstance(node, ast.Call):
            # getattr(execution, "precision"), execution.get("precision")
            owner = node.args[0] if ast.unparse(node.func) == "getattr" else node.func
            names = {name for argument in node.args for name in constants(argument)} & knobs
        elif isinstance(node, ast.Compare):
            owner, names = None, constants(node) & kinds
        else:
            continue
        if names and (owner is None or re.search(r"\bexecution\b", ast.unparse(owner))):
            found.append(node)
    return [ast.unparse(node) for node in found]


def constants(node: ast.AST) -> set[str]:
    """The texts in an expression."""
    return {each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)}


def test_only_an_engine_knows_its_knobs_and_its_name() -> None:
    """Whoever needs a precision, what is compiled or an attention asks the engine that the choice prepares."""
    engines = registry("execution")
    knobs = {name for engine in engines.values() for name in engine.model_fields} - Execution.model_fields.keys()
    others = [module for module in sorted(MODULES) if not module.startswith("workbench.choices.execution")]
    none_of([
        f"{module}: {peek}" for module in others for peek in peeks(syntax_tree(MODULES[module]), knobs, set(engines))
    ])  # fmt: skip
    files = {f"workbench.choices.execution.{kind}" for kind in engines}
    none_of([f"{module} imports {name}" for module in others for name in imports(MODULES[module]) if name in files])


@pytest.mark.parametrize(
    "line",
    [
        "x = recipe.execution.precision",
        "if execution.kind == 'auto': pass",
        "x = getattr(self.launched.execution, 'precision', None)",
        "x = fields['execution']['precision']",
        "x = recipe.get('execution', {}).get('precision')",
        "if kind == 'native': pass",
        "if kind in ('native', 'other'): pass",
    ],
)
def test_a_look_past_the_engine_is_found(line: str) -> None:
    assert peeks(ast.parse(line), {"precision", "kind"}, {"native"})
    assert not peeks(ast.parse("recipe.execution.threads, engine.precision, other.kind"), {"precision", "kind"}, set())


def test_files_and_functions_stay_small() -> None:
    """Files have under 400 lines, functions up to 80: what is longer is split where a reader would."""
    long: list[str] = []
    for path in FILES:
        if (count := len(path.read_text(encoding="utf-8").splitlines())) >= 400:
            long.append(f"{module_name(path)} has {count} lines")
        for node in ast.walk(syntax_tree(path)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > 80:
                    long.append(f"{module_name(path)}: {node.name} has {length} lines")
    none_of(long)


def test_public_names_have_docstrings() -> None:
    bare: list[str] = []
    for path in FILES:
        tree = syntax_tree(path)
        if not ast.get_docstring(tree):
            bare.append(f"{module_name(path)} has no docstring")
        public = (ast.FunctionDef, ast.ClassDef)
        for node in tree.body:
            if not isinstance(node, public) or "overload" in map(ast.unparse, node.decorator_list):
                continue
            if not node.name.startswith("_") and not ast.get_docstring(node):
                bare.append(f"{module_name(path)}: {node.name} has no docstring")
    none_of(bare)


def test_docstrings_begin_with_a_verb_or_their_subject() -> None:
    begun = re.compile(r'"""(?:What|Whether|Of|How|Why|That|Who|Where|When|Which|While) ')
    none_of([module_name(path) for path in FILES if begun.search(path.read_text(encoding="utf-8"))])


def room_of(module: str) -> str:
    """Return the room of a module: its folder or loose file in the package; the package itself is one."""
    return module.split(".")[1] if "." in module else "workbench"


def test_the_house_has_few_rooms_and_floors() -> None:
    """A room stands one floor above the highest that it imports when it is loaded; the ground floor imports none."""
    below: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        names = (name for name in imports(path, lazy=False) if name.split(".")[0] == "workbench")
        below.setdefault(room_of(module), set()).update(map(room_of, names))
    below.pop("workbench")

    @cache
    def floor(room: str) -> int:
        return 1 + max((floor(each) for each in below[room] - {room, "workbench"}), default=0)

    assert len([room for room in below if (ROOT / room).is_dir()]) <= 25
    assert max(map(floor, below)) <= 13, sorted((floor(room), room) for room in below)


def test_root_names_are_few_and_frozen() -> None:
    assert workbench.__all__ == [
        "Board", "Lab", "Lesson", "Recipe", "Run", "accelerate", "choices", "compare", "experiment", "fill", "finetune",
        "follow", "forecast", "generate", "launch", "presets", "race", "rows", "runs", "score", "send", "sweep",
        "tune",
    ]  # fmt: skip
    for name in workbench.__all__:
        assert getattr(workbench, name) is not None


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import workbench", {"torch", "transformers", "plotly", "ipywidgets", "matplotlib", "numpy", "pydantic"}),
        ("import workbench; workbench.runs('no-such-folder')", {"torch", "transformers", "plotly", "matplotlib"}),
        ("import workbench.plots.report", {"torch", "transformers"}),
        (
            "from workbench.experiments.race import race; import workbench.experiments.sweep.sweep, "
            "workbench.experiments.tune.tune",
            {"torch", "transformers", "plotly", "matplotlib", "scipy", "optuna"},
        ),
        ("import workbench.training.worker", {"transformers", "plotly", "matplotlib", "ipywidgets"}),
    ],
)
@pytest.mark.process
def test_imports_stay_light(statement: str, heavy: set[str]) -> None:
    code = f"{statement}; import sys; print(sorted(set(sys.modules) & {heavy!r}))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip().splitlines()[-1] == "[]"
