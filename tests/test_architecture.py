"""Who may import whom, what stays light, how large things may grow: the house's rules, read from the source."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import workbench

ROOT = Path(workbench.__file__).parent
FILES = sorted(p for p in ROOT.rglob("*.py") if "node_modules" not in p.parts)

# The run folder's file formats are the joint of the two wings: the trainer writes them, the watchers read them.
RUN_FORMATS = {
    "workbench.runs.folder", "workbench.runs.state", "workbench.runs.control", "workbench.runs.checkpoints",
    "workbench.runs.lease",
}  # fmt: skip

# They follow runs that any process trains, in kernels and servers where torch must not be loaded.
WATCHERS = ("workbench.runs", "workbench.plots", "workbench.live", "workbench.server")

# The ground floor of the house, which stands on nothing of ours: everything else may use it.
GROUND = {
    "workbench.printable",
    "workbench.assignments",
    "workbench.columns",
    "workbench.errors",
    "workbench.fields",
    "workbench.floors",
    "workbench.json_lines",
    "workbench.quantities",
    "workbench.thinned",
}

# What each part may import of us, besides itself. Longest matching prefix wins.
MAY_IMPORT: dict[str, set[str]] = {
    "workbench.atomic": set(),
    "workbench.errors": set(),
    "workbench.printable": set(),
    "workbench.fields": set(),
    "workbench.assignments": {"workbench.errors"},
    "workbench.columns": {"workbench.json_lines"},
    "workbench.thinned": {"workbench.columns", "workbench.json_lines"},
    "workbench.floors": set(),
    "workbench.quantities": set(),
    "workbench.huge_pages": set(),
    "workbench.json_lines": set(),
    "workbench.telemetry": {"workbench.json_lines"},
    "workbench.ops": {"workbench.atomic", "workbench.telemetry"},
    "workbench.choices": {"workbench.atomic", "workbench.ops", "workbench.telemetry"},
    "workbench.recipe": {"workbench.atomic", "workbench.choices"},
    "workbench.changes": {"workbench.choices", "workbench.recipe"},
    "workbench.presets": {"workbench.choices", "workbench.recipe"},
    "workbench.transformers": {"workbench.choices"},
    "workbench.training": {
        "workbench.telemetry", "workbench.ops", "workbench.atomic", "workbench.choices", "workbench.recipe",
        "workbench.changes", "workbench.huge_pages", "workbench.transformers", *RUN_FORMATS,
    },
    "workbench.forecasting": {
        "workbench.atomic", "workbench.telemetry", "workbench.choices", "workbench.recipe",
        "workbench.ops", "workbench.huge_pages", "workbench.training", "workbench.runs.folder",
    },
    "workbench.forecast": {"workbench.choices", "workbench.recipe", "workbench.forecasting"},
    "workbench.runs.folder": {"workbench.atomic"},
    "workbench.runs.state": {"workbench.runs.folder"},
    "workbench.runs.lease": {"workbench.runs.folder", "workbench.runs.state"},
    "workbench.runs.control": {"workbench.runs.folder", "workbench.runs.lease"},
    "workbench.runs.checkpoints": set(),
    "workbench.runs": {
        "workbench", "workbench.telemetry", "workbench.recipe", "workbench.changes",
        "workbench.huge_pages",
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
        "workbench.huge_pages", "workbench.demo", "workbench.plots",
    },
    "workbench.ui": {
        "workbench", "workbench.telemetry", "workbench.choices", "workbench.recipe",
        "workbench.presets", "workbench.runs", "workbench.plots", "workbench.live", "workbench.forecast",
    },
    "workbench.cli": {
        "workbench", "workbench.telemetry", "workbench.choices", "workbench.recipe",
        "workbench.presets", "workbench.runs", "workbench.plots", "workbench.forecast",
    },
    "workbench.demo": {
        "workbench", "workbench.telemetry", "workbench.recipe", "workbench.choices",
        "workbench.presets", "workbench.runs", "workbench.plots",
    },
    "workbench.__main__": {"workbench.cli"},
    "workbench": set(),
}  # fmt: skip


def module_name(path: Path) -> str:
    """Dotted name of a source file."""
    parts = ("workbench", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, *, lazy: bool = True, typing: bool = False) -> Iterator[str]:
    """Dotted names a file imports.

    Args:
        path: of the file.
        lazy: those inside functions, too, not only those at import time.
        typing: those for type checkers only, too.
    """
    todo: list[ast.AST] = list(ast.parse(path.read_text(encoding="utf-8")).body)
    while todo:
        node = todo.pop()
        if not typing and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += node.orelse
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            submodules = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else node.module for name in submodules)
        elif lazy or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            todo += ast.iter_child_nodes(node)


MODULES = {module_name(path): path for path in FILES}


def rule_of(module: str) -> str:
    """The longest entry of MAY_IMPORT that covers a module."""
    return max((rule for rule in MAY_IMPORT if module == rule or module.startswith(rule + ".")), key=len)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_point_down(module: str) -> None:
    rule = rule_of(module)
    allowed = MAY_IMPORT[rule] | {rule} | (GROUND if MAY_IMPORT[rule] else set())
    for name in imports(MODULES[module]):
        if not name.startswith("workbench"):
            continue
        covered = any(name == a or (a != "workbench" and name.startswith(a + ".")) for a in allowed)
        # RUN_FORMATS are listed one by one, so `workbench.training` cannot reach the rest of runs/.
        assert covered, f"{module} (rule {rule}) must not import {name}; it may import {sorted(allowed)}"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_only_the_page_imports_jupyter(module: str) -> None:
    if rule_of(module) in ("workbench.ui", "workbench.server"):
        return
    jupyter = {"ipywidgets", "anywidget", "IPython", "jupyterlab", "jupyter_core", "jupyter_server", "ipykernel"}
    found = {name.split(".")[0] for name in imports(MODULES[module], lazy=False)} & jupyter
    assert not found, f"{module} imports {found}"


@pytest.mark.parametrize("module", [m for m in sorted(MODULES) if m.startswith(WATCHERS)])
def test_watchers_import_no_torch(module: str) -> None:
    found = {name.split(".")[0] for name in imports(MODULES[module])} & {"torch", "transformers"}
    assert not found, f"{module} imports {found}: watching must not need the trainer's libraries"


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


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 400, f"{path.name} is too long: split it where a reader would"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= 80, f"{path.name}: {node.name} has {length} lines"


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_public_names_have_docstrings(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), f"{path.name} has no module docstring"
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{path.name}: {node.name} has no docstring"


def test_root_names_are_few_and_frozen() -> None:
    assert workbench.__all__ == ["Lab", "Recipe", "Run", "choices", "forecast", "launch", "presets", "runs"]
    for name in workbench.__all__:
        assert getattr(workbench, name) is not None


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import workbench", {"torch", "transformers", "plotly", "ipywidgets", "matplotlib", "numpy", "pydantic"}),
        ("import workbench; workbench.runs('/nonexistent')", {"torch", "transformers", "plotly", "matplotlib"}),
        ("import workbench.plots.report", {"torch", "transformers"}),
        ("import workbench.training.worker", {"transformers", "plotly", "matplotlib", "ipywidgets"}),
    ],
)
@pytest.mark.process
def test_imports_stay_light(statement: str, heavy: set[str]) -> None:
    code = f"{statement}; import sys; print(sorted(set(sys.modules) & {heavy!r}))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip().splitlines()[-1] == "[]"
