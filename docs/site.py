"""Build the documentation's site from the repository's own Markdown, cards, docstrings and notebooks.

    python docs/site.py                  # into out/site; the notebooks are executed, which takes minutes, once
    python docs/site.py --notebooks off  # as they are

Documents keep their places, so that their links stay right. A broken link or reference fails the build.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import papermill

ROOT = Path(__file__).parent.parent
OUT = ROOT / "out" / "site"
SOURCE, EXECUTED = ROOT / "out" / "site-source", ROOT / "out" / "site-notebooks"
PAGES = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "LOG.md", "CHANGELOG.md", "LICENSE", "docs", "notebooks")
SMALL: dict[str, dict[str, Any]] = {
    "00_quickstart": {"budget": "30 s"},
    "10_train": {"budget": "20 s"},
    "12_report_run": {},
    "20_race": {
        "baseline": "quickstart",
        "mine": "quickstart:optimizer=lans",
        "budget": "400 steps",
        "seeds": 4,
        "fail_on": "never",
    },
    "21_accelerate_model": {"budget": "2 epochs"},
    "22_sweep": {"recipe": "quickstart", "budget": "200 steps"},
}
"""Notebooks that are executed for the site, in this order, and their parameters; the others show their cells alone."""
GROUPS = {
    "data": "Data: sources",
    "data/steps": "Data: preparation steps",
    "data/orders": "Data: orders",
    "data/tokenizers": "Data: tokenizers",
    "data/batch_rules": "Data: batch rules",
    "objectives": "Objectives",
    "architectures": "Architectures",
    "depth": "Depth",
    "optimizers": "Optimizers",
    "schedules": "Schedules",
    "execution": "Execution",
}
"""Folders of cards, in the order of the site; others follow by name."""


def main(arguments: list[str] | None = None) -> int:
    """Build the site and return Sphinx's exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notebooks", choices=["executed", "off"], default="executed", help="default executed")
    parser.add_argument("--out", type=Path, default=OUT, help="default out/site")
    options = parser.parse_args(arguments)
    lay_out(SOURCE)
    if options.notebooks == "executed":
        execute_notebooks(EXECUTED, SOURCE / "notebooks")
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", str(SOURCE), str(options.out)]
    return subprocess.run(command, check=False).returncode


def lay_out(source: Path) -> None:
    """Copy the documents into ``source`` as they stand in the repository, with the pages that lead to them."""
    shutil.rmtree(source, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", *PAGES, "workbench/*.md", "workbench/*.png"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in listed.stdout.splitlines():
        target = source / (name.removeprefix("docs/site/") if name.startswith("docs/site/") else name)
        if (ROOT / name).is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
    (source / "cards.md").write_text(_cards(source), encoding="utf-8")
    (source / "notebooks" / "index.md").write_text(_notebooks(source), encoding="utf-8")
    (source / "reference.md").write_text(_reference(), encoding="utf-8")
    log = source / "LOG.md"
    entries = "\n".join(f"docs/log/{path.stem}" for path in sorted((source / "docs" / "log").glob("*.md")))
    log.write_text(f"{log.read_text(encoding='utf-8')}\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n", encoding="utf-8")
    for page in source.rglob("*.md"):
        page.write_text(_without_links_to_folders(page), encoding="utf-8")


def _without_links_to_folders(page: Path) -> str:
    """Text of a page whose links to folders are words, since a site has none; that of the notebooks has a page."""

    def told(link: re.Match[str]) -> str:
        words, target = link.groups()
        folder = (page.parent / target).resolve()
        if folder == SOURCE / "notebooks":
            return f"[{words}]({target}/index.md)"
        return words if folder.is_dir() or (ROOT / folder.relative_to(SOURCE)).is_dir() else link.group()

    return re.sub(r"\[([^\]]+)\]\(((?!https?:|mailto:)[^)#\s]+)\)", told, page.read_text(encoding="utf-8"))


def execute_notebooks(kept: Path, target: Path) -> None:
    """Replace notebooks in ``target`` by executed ones; ``kept`` has those whose cells and parameters are as before."""
    kept.mkdir(parents=True, exist_ok=True)
    for name, parameters in SMALL.items():
        notebook = ROOT / "notebooks" / f"{name}.ipynb"
        decided = notebook.read_bytes() + json.dumps(parameters).encode()
        executed = kept / f"{name}-{hashlib.sha256(decided).hexdigest()[:12]}.ipynb"
        if not executed.exists():
            print(f"{name}: executed with {parameters or 'its own parameters'}", flush=True)
            given = {**parameters, "runs_dir": str(kept / "runs")}
            unfinished = kept / f"{name}-unfinished.ipynb"
            papermill.execute_notebook(
                str(notebook), str(unfinished), parameters=given, cwd=str(kept), progress_bar=False
            )
            unfinished.replace(executed)
        shutil.copyfile(executed, target / f"{name}.ipynb")


def _cards(source: Path) -> str:
    choices = source / "workbench" / "choices"
    folders = {str(card.parent.relative_to(choices)) for card in choices.rglob("*.md")}
    parts = ["# All methods\n\nA card each: what it does, the maths, when to use it and when not, our own evidence.\n"]
    for folder in [*(name for name in GROUPS if name in folders), *sorted(folders - set(GROUPS))]:
        title = GROUPS.get(folder, folder.replace("/", ": ").replace("_", " ").capitalize())
        names = "\n".join(f"workbench/choices/{folder}/{card.stem}" for card in sorted((choices / folder).glob("*.md")))
        parts.append(f"```{{toctree}}\n:maxdepth: 1\n:caption: {title}\n\n{names}\n```\n")
    return "\n".join(parts)


def _notebooks(source: Path) -> str:
    names = [path.stem for path in sorted((source / "notebooks").glob("*.ipynb"))]
    listed = "\n".join(["```{toctree}", ":maxdepth: 1", "", *names, "```"])
    return f"# Notebooks\n\nEach runs as it stands, in JupyterLab and under papermill.\n\n{listed}\n"


def _reference() -> str:
    import workbench

    parts = ["# Reference\n\n`import workbench as wb` gives these names. They load on first use.\n"]
    for name in workbench.__all__:
        value = getattr(workbench, name)
        module = workbench._HOMES[name]
        kind = "automodule" if inspect.ismodule(value) else "autoclass" if inspect.isclass(value) else "autofunction"
        target = module if inspect.ismodule(value) else f"workbench.{name}"
        options = [] if kind == "autofunction" else ["   :members:"]
        lines = [f"## wb.{name}", "", "```{eval-rst}", f".. {kind}:: {target}", *options, "```", ""]
        parts.append("\n".join(lines))
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
