"""``workbench new``: a package with a choice, plot or benchmark of one's own, which runs before anything is changed."""

from __future__ import annotations

import importlib
import importlib.util
import json
import keyword
import re
from pathlib import Path
from typing import Any, NamedTuple

from workbench.base.errors import WorkbenchError
from workbench.base.text import plain_lines
from workbench.cli.verbs import Parser

TEMPLATES = Path(__file__).parent / "templates"


class Kind(NamedTuple):
    """A kind of package.

    Attributes:
        noun: in sentences. group: of its entry point, behind ``workbench.``.
        shown: where it appears once installed. lesson: what its notebook does.
        does, maths, knobs: of the card; empty where there is none.
    """

    noun: str
    group: str
    shown: str
    lesson: str
    does: str = ""
    maths: str = ""
    knobs: str = ""


_CHOICE = "`workbench choices @kind@ @name@` shows its card; forms and `--set @kind@=@name@` take it"
_RACE = "it races what you wrote against the default, in four minutes."
_GONE = " Runs that used it then open, but cannot be trained further."
KINDS = {
    "optimizer": Kind(
        "an optimizer", "choices", _CHOICE, _RACE, "gradient descent with momentum.",
        "    v <- momentum v + g\n    x <- x - lr (v + weight_decay x)",
        "| `lr` | 0.05 | peak rate |\n| `weight_decay` | 0.01 | multiplied by `lr` |\n"
        "| `momentum` | 0.9 | share of the last direction that is kept |",
    ),
    "objective": Kind(
        "an objective", "choices", _CHOICE, _RACE, "next tokens with smoothed labels.",
        "    L = mean over t of -(1 - s) log p(x_{t+1}) - s mean over v of log p(v)",
        "| `smoothing` | 0.1 | s, the share of a label that is spread over all words |",
    ),
    "depth": Kind(
        "a depth method", "choices", _CHOICE, _RACE, "one layer at a time rests.",
        "    layer floor(step / every) mod L rests; the others add L / (L - 1) times what they compute",
        "| `every` | 10 | steps for which a layer rests |",
    ),
    "data": Kind(
        "a corpus", "choices", _CHOICE, "it trains a model on your text, in a minute.",
        "a corpus of sums in words and figures.",
        "    document a: \"If you add b to a you get a + b.\" for b = 1 ... largest",
        "| `largest` | 100 | largest number that is added |",
    ),
    "plot": Kind(
        "a plot", "plots", "Every report of runs draws it: `workbench report RUN`", "it trains two runs and draws them."
    ),
    "benchmark": Kind(
        "a benchmark", "benchmarks", "`workbench score RUN --on @name@` measures it",
        "it trains a model and scores it, in a minute.",
    ),
}  # fmt: skip
"""Kinds of packages, by the word behind ``workbench new``."""


def main(argv: list[str]) -> int:
    """Write a new package.

    Raises:
        WorkbenchError: no such kind, a name that cannot be, or a folder that is there.
    """
    parser = Parser(prog="workbench new", description="write a package of your own, which runs before you change it")
    parser.take("kind KIND", ", ".join(KINDS), choices=KINDS)
    parser.take("name NAME", "such as my_opt: small letters, digits and underscores")
    parser.take("--folder DIR", "where its folder is made (default: here)", default=".")
    parser.take("--json", "print one JSON object and nothing else on stdout")
    options = parser.parse_args(argv)
    folder = write(options.kind, options.name, Path(options.folder))
    text = f"wrote {folder}\nnext: pip install -e {folder}, then see its README.md"
    found = {"kind": options.kind, "name": options.name, "folder": str(folder)}
    print(json.dumps(found) if options.json else plain_lines(text))
    return 0


def write(kind: str, name: str, parent: Path) -> Path:
    """Write the package of a kind into a new folder of this name; returns the folder.

    Raises:
        WorkbenchError: a name that cannot be, or a folder that is there.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name) or keyword.iskeyword(name):
        raise WorkbenchError(
            f"'{name:.60}' cannot be the name: small letters, digits and underscores, beginning with a letter, at most "
            "40, no word of Python; for example my_opt"
        )
    folder = parent.expanduser().absolute() / name
    if folder.exists():
        raise WorkbenchError(f"'{folder}' is there already; take another name, or another place with --folder")
    _check_free(kind, name)
    words = _words(kind, name)
    for path, text in _files(kind, name).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(_filled(text, words), encoding="utf-8")
    lesson = _filled(_template(f"{kind}.lesson" if KINDS[kind].lesson != _RACE else "race.lesson"), words)
    (folder / "notebooks").mkdir()
    (folder / "notebooks" / f"{name}.ipynb").write_text(json.dumps(notebook(lesson), indent=1) + "\n", encoding="utf-8")
    return folder


def notebook(text: str) -> dict[str, Any]:
    """Return cells in the percent format as a notebook: ``# %%``, ``# %% [markdown]``, or ``# %% TAG``."""
    cells: list[dict[str, Any]] = []
    for part in re.split(r"^# %%", text, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        source = body.strip()
        cell: dict[str, Any] = {"id": f"cell-{len(cells)}", "metadata": {}}
        if "[markdown]" in head:
            cell |= {"cell_type": "markdown"}
            source = re.sub(r"^# ?", "", source, flags=re.MULTILINE)
        else:
            cell |= {"cell_type": "code", "execution_count": None, "outputs": []}
            cell["metadata"] = {"tags": head.split()} if head.strip() else {}
        cells.append(cell | {"source": source.splitlines(keepends=True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _check_free(kind: str, name: str) -> None:
    known = _known(kind)
    if name in known:
        raise WorkbenchError(f"there is {KINDS[kind].noun} '{name}' already; take another name")
    if importlib.util.find_spec(name) is not None:
        raise WorkbenchError(f"'{name}' is the name of an installed package, which yours would hide; take another name")


def _known(kind: str) -> set[str]:
    """Return the names of what there is of a kind."""
    if kind == "plot":
        return {"loss", "speed", "networks", "schedule"}
    # By name: both need torch.
    if kind == "benchmark":
        return {"fast", *importlib.import_module("workbench.scoring").benchmarks()}
    return set(importlib.import_module("workbench.choices").registry(kind))


def _words(kind: str, name: str) -> dict[str, str]:
    of = KINDS[kind]
    card = "Fill in the card, `@name@/@name@.md`: forms and reports show it." if of.does else "It needs no card."
    return {
        "shown": f"{of.shown}.", "card": card, "gone": _GONE if of.does else "", "lesson": of.lesson, "does": of.does,
        "maths": of.maths, "knobs": of.knobs, "noun": of.noun, "Noun": of.noun.capitalize(), "group": of.group,
        "axis": kind, "kind": kind, "name": name, "Class": "".join(part.capitalize() for part in name.split("_")),
        "title": name.replace("_", " ").capitalize(),
    }  # fmt: skip


def _files(kind: str, name: str) -> dict[str, str]:
    """Return the templates by path."""
    found = {
        "pyproject.toml": _template("pyproject.toml"),
        "README.md": _template("README.md"),
        f"{name}/__init__.py": '"""@title@: @noun@ for the workbench."""\n',
        f"{name}/{name}.py": _template(f"{kind}.py"),
        f"tests/test_{name}.py": _template(f"{kind}.test"),
    }
    return found | ({f"{name}/{name}.md": _template("card.md")} if KINDS[kind].does else {})


def _template(name: str) -> str:
    return (TEMPLATES / f"{name}.txt").read_text(encoding="utf-8")


def _filled(text: str, words: dict[str, str]) -> str:
    """Put the words in; in their order, for some hold others."""
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text
