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

# The run folder's file formats are the joint of the two wings: the trainer writes them, the watchers read them.
RUN_FORMATS = {
    "workbench.runs.folder", "workbench.runs.state", "workbench.runs.control", "workbench.runs.checkpoints",
    "workbench.runs.lease", "workbench.runs.order",
}  # fmt: skip

# They follow runs that any process trains, in kernels and servers where torch must not be loaded.
WATCHERS = ("workbench.runs", "workbench.plots", "workbench.live", "workbench.server")

# The ground floor of the house, which stands on nothing of ours: everything else may use it.
GROUND = {
    "workbench.cache_folder",
    "workbench.printable",
    "workbench.profile_table",
    "workbench.assignments",
    "workbench.columns",
    "workbench.errors",
    "workbench.fields",
    "workbench.floors",
    "workbench.json_lines",
    "workbench.loading",
    "workbench.quantities",
    "workbench.scored_text",
    "workbench.thinned",
}

# What each part may import of us, besides itself. Longest matching prefix wins.
MAY_IMPORT: dict[str, set[str]] = {
    "workbench.atomic": set(),
    "workbench.cache_folder": set(),
    "workbench.errors": set(),
    "workbench.printable": set(),
    "workbench.profile_table": set(),
    "workbench.fields": set(),
    "workbench.assignments": {"workbench.errors"},
    "workbench.columns": {"workbench.json_lines"},
    "workbench.thinned": {"workbench.columns", "workbench.json_lines"},
    "workbench.floors": set(),
    # The page gets words of what was learned through it.
    "workbench.quantities": {"workbench.floors"},
    "workbench.scored_text": set(),
    "workbench.heap_settings": set(),
    "workbench.json_lines": set(),
    "workbench.loading": set(),
    "workbench.telemetry": {"workbench.json_lines"},
    "workbench.ops": {"workbench.atomic", "workbench.telemetry"},
    "workbench.choices": {"workbench.atomic", "workbench.ops", "workbench.telemetry"},
    "workbench.recipe": {"workbench.atomic", "workbench.choices"},
    "workbench.changes": {"workbench.choices", "workbench.recipe"},
    "workbench.presets": {"workbench.choices", "workbench.recipe"},
    "workbench.recipe_code": {"workbench.choices", "workbench.presets"},
    "workbench.repeating": {
        "workbench.atomic", "workbench.choices", "workbench.recipe_code", "workbench.runs", "workbench.experiments",
        "workbench.racing", "workbench.sweeping", "workbench.tuning",
    },
    "workbench.opening": {
        "workbench.runs", "workbench.experiments", "workbench.racing", "workbench.sweeping", "workbench.tuning",
    },
    "workbench.transformers": {"workbench.choices"},
    "workbench.training": {
        "workbench.telemetry", "workbench.ops", "workbench.atomic", "workbench.choices", "workbench.recipe",
        "workbench.changes", "workbench.heap_settings", *RUN_FORMATS,
    },
    "workbench.exporting": {
        "workbench.telemetry", "workbench.atomic", "workbench.choices", "workbench.recipe", "workbench.training",
        "workbench.transformers", "workbench.runs.folder",
        # What made a model besides its recipe, as the run folder has it.
        "workbench.runs.in_force", "workbench.runs.forks.origin",
    },
    "workbench.forecasting": {
        "workbench.atomic", "workbench.telemetry", "workbench.choices", "workbench.recipe",
        "workbench.ops", "workbench.heap_settings", "workbench.training", "workbench.runs.folder",
    },
    "workbench.planning": {
        "workbench.choices", "workbench.ops", "workbench.recipe", "workbench.training", "workbench.runs.state",
    },
    "workbench.forecast": {"workbench.choices", "workbench.recipe", "workbench.forecasting"},
    "workbench.runs.folder": {"workbench.atomic"},
    "workbench.runs.state": {"workbench.runs.folder"},
    "workbench.runs.lease": {"workbench.runs.folder", "workbench.runs.state"},
    "workbench.runs.control": {"workbench.runs.folder", "workbench.runs.lease"},
    "workbench.runs.checkpoints": set(),
    "workbench.runs.order": set(),
    "workbench.runs": {
        "workbench", "workbench.atomic", "workbench.telemetry", "workbench.recipe", "workbench.changes",
        "workbench.heap_settings",
    },
    "workbench.plots": {"workbench", "workbench.atomic", "workbench.telemetry", "workbench.runs"},
    "workbench.live": {
        "workbench.atomic", "workbench.telemetry", "workbench.runs", "workbench.plots",
    },
    "workbench.server": {
        "workbench", "workbench.telemetry", "workbench.runs", "workbench.plots", "workbench.live",
    },
    "workbench.bench": {
        "workbench", "workbench.choices", "workbench.ops", "workbench.recipe", "workbench.presets",
        "workbench.training", "workbench.runs", "workbench.telemetry", "workbench.forecast", "workbench.forecasting",
        "workbench.heap_settings", "workbench.atomic", "workbench.demo", "workbench.plots", "workbench.racing",
    },
    "workbench.experiments": {
        "workbench", "workbench.choices", "workbench.recipe", "workbench.presets", "workbench.runs",
        "workbench.plots", "workbench.forecast",
    },
    "workbench.racing": {
        "workbench", "workbench.atomic", "workbench.choices", "workbench.recipe", "workbench.presets", "workbench.runs",
        "workbench.plots", "workbench.forecast", "workbench.forecasting", "workbench.experiments",
    },
    "workbench.sweeping": {
        "workbench", "workbench.atomic", "workbench.choices", "workbench.recipe", "workbench.presets", "workbench.runs",
        "workbench.plots", "workbench.forecast", "workbench.experiments",
    },
    "workbench.tuning": {
        "workbench", "workbench.atomic", "workbench.choices", "workbench.recipe", "workbench.runs", "workbench.plots",
        "workbench.forecast", "workbench.experiments", "workbench.racing", "workbench.sweeping",
    },
    "workbench.ui": {
        "workbench", "workbench.telemetry", "workbench.choices", "workbench.recipe", "workbench.recipe_code",
        "workbench.presets", "workbench.runs", "workbench.plots", "workbench.live", "workbench.forecast",
        "workbench.experiments", "workbench.racing", "workbench.sweeping", "workbench.tuning", "workbench.opening",
    },
    "workbench.cli": {
        "workbench", "workbench.telemetry", "workbench.choices", "workbench.recipe", "workbench.changes",
        "workbench.presets", "workbench.runs", "workbench.plots", "workbench.forecast",
        "workbench.experiments", "workbench.racing", "workbench.sweeping", "workbench.tuning", "workbench.opening",
        "workbench.repeating",
    },
    "workbench.demo": {
        "workbench", "workbench.telemetry", "workbench.recipe", "workbench.choices",
        "workbench.presets", "workbench.runs", "workbench.plots",
    },
    "workbench.comparison": {"workbench.runs", "workbench.plots", "workbench.ui", "workbench.opening"},
    "workbench.accelerated": {
        "workbench.choices", "workbench.recipe", "workbench.training", "workbench.runs",
    },
    "workbench.__main__": {"workbench.cli"},
    "workbench": set(),
}  # fmt: skip


def module_name(path: Path) -> str:
    """Dotted name of a source file."""
    parts = ("workbench", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def syntax_tree(path: Path) -> ast.Module:
    """A source file, parsed once for all rules."""
    return ast.parse(path.read_text(encoding="utf-8"))


class Import(NamedTuple):
    """What a file imports: a dotted name, whether inside a function, whether for type checkers only."""

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


def rule_of(module: str) -> str:
    """The longest entry of MAY_IMPORT that covers a module."""
    return max((rule for rule in MAY_IMPORT if module == rule or module.startswith(rule + ".")), key=len)


def forbidden(module: str) -> list[str]:
    """What a module imports of us although its rule does not allow it, one sentence each."""
    rule = rule_of(module)
    allowed = MAY_IMPORT[rule] | {rule} | (GROUND if MAY_IMPORT[rule] else set())
    # RUN_FORMATS are listed one by one, so `workbench.training` cannot reach the rest of runs/.
    return [
        f"{module} (rule {rule}) must not import {name}; it may import {sorted(allowed)}"
        for name in imports(MODULES[module])
        if name.split(".")[0] == "workbench"
        and not any(name == a or (a != "workbench" and name.startswith(a + ".")) for a in allowed)
    ]


def none_of(violations: list[str]) -> None:
    """One test per rule that names every violation: a test per rule and module, 1,200 of them, took ten seconds."""
    assert not violations, "\n" + "\n".join(violations)


def test_imports_point_down() -> None:
    assert len(MODULES) > 200
    none_of([violation for module in sorted(MODULES) for violation in forbidden(module)])


def test_only_the_page_imports_jupyter() -> None:
    jupyter = {"ipywidgets", "anywidget", "IPython", "jupyterlab", "jupyter_core", "jupyter_server", "ipykernel"}
    others = [module for module in sorted(MODULES) if rule_of(module) not in ("workbench.ui", "workbench.server")]
    none_of([
        f"{module} imports {name}"
        for module in others
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
        if name.split(".")[0] in ("torch", "transformers")
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
    """Where a file reads one of an engine's own knobs from an execution choice, or compares with an engine's name."""
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
            if isinstance(node, public) and not node.name.startswith("_") and not ast.get_docstring(node):
                bare.append(f"{module_name(path)}: {node.name} has no docstring")
    none_of(bare)


def test_root_names_are_few_and_frozen() -> None:
    assert workbench.__all__ == [
        "Lab", "Recipe", "Run", "accelerate", "choices", "compare", "experiment", "forecast", "launch", "presets",
        "race", "runs", "sweep", "tune",
    ]  # fmt: skip
    for name in workbench.__all__:
        assert getattr(workbench, name) is not None


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import workbench", {"torch", "transformers", "plotly", "ipywidgets", "matplotlib", "numpy", "pydantic"}),
        ("import workbench; workbench.runs('/nonexistent')", {"torch", "transformers", "plotly", "matplotlib"}),
        ("import workbench.plots.report", {"torch", "transformers"}),
        (
            "import workbench.racing.race, workbench.sweeping.sweep, workbench.tuning.tune",
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
