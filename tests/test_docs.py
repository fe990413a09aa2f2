"""What the documents say is run: README's commands, Python snippets of README, CONTRIBUTING and every method card."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.documents import ROOT, Executed, blocks
from workbench.cli.verbs import verb_parser

ARCHITECTURE = ROOT / "ARCHITECTURE.md"
MEASURED = ROOT / "docs" / "measured.md"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ARCHITECTURE, MEASURED, ROOT / "docs" / "methods.md"]
DOCUMENTS += [
    ROOT / "docs" / "guide.md",
    ROOT / "docs" / "scale.md",
    ROOT / "docs" / "bridges.md",
    ROOT / "docs" / "own_choice.md",
    ROOT / "docs" / "ci.md",
    ROOT / "docs" / "lessons.md",
    ROOT / "docs" / "workshop.md",
    ROOT / "docs" / "threat_model.md",
    ROOT / "LOG.md",
    *sorted((ROOT / "docs" / "log").glob("*.md")),
]
DOCUMENTS += sorted((ROOT / "workbench").rglob("*.md"))
DOCUMENTS = [path for path in DOCUMENTS if "node_modules" not in path.parts]
SITE = sorted((ROOT / "docs" / "site").glob("*.md"))
MADE = ("cards.md", "reference.md", "notebooks/index.md")
"""Pages that the site's build writes."""
ROUTED = ("send", "new", "bench", "workshop", "ci")
"""Verbs that have a parser of their own."""


@pytest.mark.xdist_group("readme")
def test_readme_commands_run_in_order(readme: Executed) -> None:
    assert len(readme.commands) >= 4, "README shows the CLI and papermill"
    for line, done in readme.commands.items():
        assert done.returncode == 0, f"{line}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


@pytest.mark.parametrize("path", [*DOCUMENTS, *SITE], ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_are_ones_that_the_command_line_takes(path: Path) -> None:
    """They are parsed, with their options, and not run; README's are run."""
    text = "\n".join(blocks(path, "bash")).replace("\\\n", " ")
    for line in (line for line in text.splitlines() if line.startswith("workbench ")):
        arguments = shlex.split(line, comments=True)[1:]
        if arguments[0] not in ROUTED:
            verb_parser().parse_args(arguments)  # raises what it would tell the user


@pytest.mark.parametrize(
    "path", [p for p in [*DOCUMENTS, *SITE] if blocks(p, "python")], ids=lambda p: str(p.relative_to(ROOT))
)
def test_python_snippets_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for body in blocks(path, "python"):
        exec(compile(body, str(path), "exec"), names)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (path.parent / target).exists(), f"{path.name} links to {target}, which is not there"


@pytest.mark.parametrize("path", SITE, ids=lambda p: p.name)
def test_links_of_the_site_lead_somewhere(path: Path) -> None:
    """They are written as the site lays its pages out: these at the root, beside the repository's own."""
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://", "mailto:")):
            found = target in MADE or (ROOT / target).exists() or (path.parent / target).exists()
            assert found, f"{path.name} links to {target}, which is not there"


def _measured_rows(path: Path) -> list[list[str]]:
    """Cells of the rows of a document's tables whose last column is "result file"."""
    table = re.compile(r"^\|.*\| result file \|\n\|---.*\n((?:\|.*\n)+)", re.MULTILINE)
    rows = [row for body in table.findall(path.read_text(encoding="utf-8")) for row in body.splitlines()]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


@pytest.mark.parametrize("path", [ROOT / "README.md", MEASURED], ids=lambda p: p.name)
def test_every_measured_row_names_its_result_file(path: Path) -> None:
    rows = [row for row in _measured_rows(path) if "not climbed yet" not in row[1]]
    assert len(rows) >= 5
    assert [row[0] for row in rows if not re.search(r"results/[\w.-]+\.json|LOG\.md", row[-1])] == []


def test_readme_repeats_the_page_of_all_measurements() -> None:
    everything = MEASURED.read_text(encoding="utf-8")
    numbers = {
        number for row in _measured_rows(ROOT / "README.md") for number in re.findall(r"[\d.]+(?:x|%| s\b| ms)", row[1])
    }
    assert len(numbers) == 5
    assert [number for number in sorted(numbers) if number not in everything] == []


def test_architecture_names_files_that_are_there() -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    named = re.findall(r"`((?:workbench|tests)/[^`]*)`", text)
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_architecture_explains_its_words_on_one_page() -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    glossary = text.split("## Words")[1].split("\n## ")[0]
    words = re.findall(r"^\| (?!word|---)([^|]+) \|", glossary, re.MULTILINE)
    assert 20 <= len(words) == len(set(words)) <= 25
    path = text.split("## The path of one run")[1].split("\n## ")[0]
    assert len(path.splitlines()) <= 25, "the path of a run fits one screen"


@pytest.mark.process
def test_no_machine_paths_in_tracked_text() -> None:
    pattern = r"(^|[^A-Za-z0-9_.])/(work|farm|root|home)/"
    found = subprocess.run(
        ["git", "grep", "-nIE", pattern, "--", ".", ":!tests/test_docs.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode in (1, 128), found.stdout
