"""One harness of benchmarks: a spec says what is measured and shown, the harness does the rest.

The rest: the options, the result file with its scores and verdicts, the tables, the pictures, the last line printed.
A benchmark's module has ``measured(options)``, which gives the result; None where there is nothing to keep. One that
goes on where it was stopped fills ``options.results`` as it measures. A module may have ``shown(result)`` as well: what
follows from the readings and is shown, but not kept.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rich.console import Console
from rich.table import Table

from workbench.base.errors import WorkbenchError
from workbench.bench.result import ResultsFile, save
from workbench.bench.table import BENCHMARKS, SET, Benchmark, Options, Rows
from workbench.plots.waterfall import waterfall_png
from workbench.recipes import presets
from workbench.recipes.recipe import Recipe
from workbench.store.evaluations import SCHEMA, Measured
from workbench.store.folder import read_object

HELPS = {"rounds": "alternating rounds", "steps": "timed steps per round and contender", "warmup": "steps before"}
UNITS = {"ms": "ms", "seconds": "s", "minutes": "min", "bytes": "bytes", "mib": "MiB", "nats": "nats"}
"""Units that names end in; any other stands in the spec."""
STEPS = "what factor:x min:x max:x so_far:x"
"""Columns of the steps of a waterfall."""


def run(name: str, argv: list[str]) -> int:
    """Measure what ``workbench bench NAME`` asks for, save it, and print its tables.

    Returns:
        the exit code: 1 where the result names something ``unfinished``.
    """
    spec, module = BENCHMARKS[name], importlib.import_module(f"workbench.bench.{name}")
    options = _parser(name, spec, module.__doc__).parse_args(argv)
    stem, more = spec.saved_as or name, getattr(module, "shown", dict)
    path: Path = options.out or Path(spec.file(options) if spec.file else spec.folder)
    # In a log file there is no terminal to fit into.
    console = Console(width=None if sys.stdout.isatty() else 150)
    if options.show is not None:
        result = held(path := Path(options.show or path))
        if result.get("benchmark") != stem:
            raise WorkbenchError(f"'{path}' holds no result of `bench {name}`; name its file: --show FILE")
        show(spec, {**result, **more(result)}, console)
        return 0
    if spec.file:
        options.results = ResultsFile(path, stem)
    found = module.measured(options)
    if found is None:
        return 0
    result = {**(options.results.data if spec.file else {}), **found}
    result |= more(result)
    kept = {name: asdict(each) for name, each in scores(spec, result, getattr(options, "rounds", 0)).items()}
    found |= {"schema": SCHEMA, "scores": kept, "verdicts": result.get("verdicts", [])}
    if spec.file:
        with options.results.own():
            options.results.put(**found)
    else:
        path = save(stem, found, path)
    show(spec, result, console)
    for place, title in spec.drawn.items():
        for _, waterfall, _ in _walk(result, place.split(".")):
            picture = path.with_suffix(".".join(["", *place.split(".")[1:], "png"]))
            factors = [(step["what"], step["factor"]) for step in waterfall["steps"]]
            picture.write_bytes(waterfall_png(title, waterfall["start"], factors))
            console.print(f"drawn {picture}", markup=False)
    console.print(f"saved {path}", markup=False)
    return int(bool(found.get("unfinished")))


def held(path: Path) -> dict[str, Any]:
    """Return what a result file holds.

    Raises:
        WorkbenchError: there is no such file.
    """
    if not path.is_file():
        raise WorkbenchError(f"there is no result file '{path}'; name one: --show FILE")
    return read_object(path)


def name_in(path: Path) -> str:
    """Return the name of the benchmark whose result a file holds.

    Raises:
        WorkbenchError: no such file, or none of a benchmark of the table.
    """
    saved_as = held(path).get("benchmark")
    found = [name for name, spec in BENCHMARKS.items() if (spec.saved_as or name) == saved_as]
    if not found:
        raise WorkbenchError(f"'{path}' holds no result of a benchmark; `workbench bench --list` names them")
    return found[0]


def _parser(name: str, spec: Benchmark, about: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"workbench bench {name}", description=about)
    if spec.preset is not None:
        parser.add_argument("--preset", default=spec.preset, help="the recipe (%(default)s)")
        parser.add_argument("--set", **SET)  # type: ignore[arg-type]
    counts = {f"--{each}": (getattr(spec, each), text) for each, text in HELPS.items() if getattr(spec, each)}
    for option, settings in {**counts, **spec.options}.items():
        if isinstance(settings, Mapping):
            parser.add_argument(option, **settings)
            continue
        default, text = settings
        if default is False:
            parser.add_argument(option, action="store_true", help=text)
            continue
        one = default[0] if isinstance(default, list) else default
        kind = int if one is None else Path if isinstance(one, Path) else type(one)
        several = {"nargs": "+"} if isinstance(default, list) else {}
        text += "" if default is None else " (%(default)s)"
        parser.add_argument(option, type=kind, default=default, help=text, **several)  # type: ignore[arg-type]
    text = "the file to fill" if spec.file else f"folder for the JSON file ({spec.folder})"
    parser.add_argument("--out", "--results", type=Path, help=text)
    parser.add_argument("--show", nargs="?", const="", metavar="FILE", help="print what a file holds; measure nothing")
    return parser


def recipe_of(options: Options) -> Recipe:
    """Return the recipe that ``--preset`` and ``--set`` name."""
    return presets.get(options.preset).with_assignments(options.set)


def rounds_of(options: Options) -> dict[str, Any]:
    """Return ``rounds``, ``steps`` and ``warmup`` as the functions that measure take them."""
    return {name: getattr(options, name) for name in HELPS}


class Column(NamedTuple):
    """Describe a column of a table: ``[+-]path[:unit]`` of a spec, read."""

    path: str
    unit: str
    head: str
    better: Literal["higher", "lower"] | None

    @classmethod
    def of(cls, rows: Rows, text: str) -> Column:
        """Read a column of a spec."""
        path, _, unit = text.lstrip("+-").partition(":")
        name = (rows.path if path == "." else path).replace("_", " ").replace(".", " ")
        unit = unit or next((UNITS[word] for word in reversed(name.split()) if word in UNITS), "")
        bare = re.sub(r" (ms|seconds|minutes|bytes|mib|nats)\b", "", name)
        head = bare if unit in ("", "x", "share") or name in UNITS else f"{bare}, {'MiB' if unit == 'bytes' else unit}"
        better: Literal["higher", "lower"] | None = {"+": "higher", "-": "lower"}.get(text[:1])  # type: ignore[assignment]
        return cls(path, unit, head, better)


def scores(spec: Benchmark, result: Mapping[str, Any], count: int = 0) -> dict[str, Measured]:
    """Return the numbers of a result that are scores, as schema 2 has them, by row and column.

    Args:
        count: rounds that each was measured in.
    """
    found: dict[str, Measured] = {}
    for rows in spec.tables:
        for title, name, row in _rows(rows, result):
            columns = [Column.of(rows, text) for text in rows.columns.split()]
            cells = {column: _at(row, column.path) for column in columns}
            # A row of a list has no name but what its texts say.
            name = name or ", ".join(value for value in cells.values() if isinstance(value, str))
            for column, value in cells.items():
                value = value.get("median") if isinstance(value, Mapping) else value
                if column.better and isinstance(value, (int, float)):
                    words = (title if "*" in rows.path else "", name, column.head)
                    found[", ".join(filter(None, words))] = Measured(float(value), column.unit, count, column.better)
    return found


def show(spec: Benchmark, result: Mapping[str, Any], console: Console) -> None:
    """Print the tables of a result, then its verdicts."""
    for rows in (*spec.tables, *(Rows(f"{place}.steps", STEPS, title) for place, title in spec.drawn.items())):
        by_title: dict[str, list[tuple[str, Any]]] = {}
        for title, name, row in _rows(rows, result):
            by_title.setdefault(title, []).append((name, row))
        for title, named in by_title.items():
            texts = rows.columns.split() or dict.fromkeys(key for _, row in named for key in row)
            columns = [Column.of(rows, text) for text in texts]
            cells = [[name, *(_cell(_at(row, each.path), each.unit) for each in columns)] for name, row in named]
            _print(console, title, ["", *(each.head for each in columns)], cells)
    verdicts = [
        [each["claim"], *(_cell(each.get(key), each.get("unit", "")) for key in ("value", "sign", "target", "goal")),
         "target met" if each["met"] else "target missed"]
        for each in result.get("verdicts", [])
    ]  # fmt: skip
    _print(console, "verdicts", ["claim", "measured", "", "target", "goal", "verdict"], verdicts)


def _print(console: Console, title: str, heads: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    cells = [row for row in cells if any(row[1:])]
    kept = [number for number in range(len(heads)) if any(row[number] for row in cells)]
    if cells:
        table = Table(*(heads[number] for number in kept), title=title)
        for row in cells:
            table.add_row(*(row[number].replace("[", r"\[") for number in kept))
        console.print(table)


def _walk(found: Any, path: Sequence[str], key: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the last key of a ``*``, what stands at the path, and the object of that key."""
    holder = found
    for number, part in enumerate(path):
        if part == "*":
            for name, each in enumerate(found) if isinstance(found, list) else found.items():
                yield from _walk(each, path[number + 1 :], str(name))
            return
        found = found.get(part) if isinstance(found, Mapping) else None
        if not found:
            return
    yield key, found, holder


def _rows(rows: Rows, result: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield title of the table, name and content of each of its rows; rows of a list have no name."""
    for key, found, holder in _walk(result, rows.path.split(".")) if rows.path else [("", [result], result)]:
        title = rows.title.format(**{**(holder if isinstance(holder, Mapping) else {}), "key": key})
        for name, row in (("", each) for each in found) if isinstance(found, list) else found.items():
            yield title, str(name), row


def _at(row: Any, path: str) -> Any:
    for part in path.split(".") if path != "." else ():
        row = row.get(part) if isinstance(row, Mapping) else None
    return row


def _cell(value: Any, unit: str) -> str:
    if value is None or isinstance(value, bool):
        return {True: "yes", False: "no", None: ""}[value]
    if isinstance(value, str):
        return value.strip().rpartition("\n")[2][:80]
    if isinstance(value, Mapping) and "median" in value:
        ends = [_cell(value[end], unit) for end in ("min", "max") if end in value]
        return _cell(value["median"], unit) + (f" ({' to '.join(ends)})" if ends else "")
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_cell(each, unit)}" for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_cell(each, unit) for each in value)
    if unit in ("share", "x"):
        return f"{value:.1%}" if unit == "share" else f"{value:.2f}x"
    value = value / 2**20 if unit == "bytes" else value
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
