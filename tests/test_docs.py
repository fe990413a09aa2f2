"""What the documents say is run: README's commands, Python snippets of README, CONTRIBUTING and every method card."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runs.conftest import processes_of

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ARCHITECTURE, *sorted((ROOT / "workbench").rglob("*.md"))]
DOCUMENTS = [path for path in DOCUMENTS if "node_modules" not in path.parts]
# Set-up commands: the tests run inside what they made; `make demo`'s job has a test of its own, `make lab` never ends.
SETUP = ("make ", "git ", "cd ", "pip ", "source ", "jupyter ")


def blocks(path: Path, language: str) -> list[str]:
    """Contents of the fenced blocks of one language."""
    return [body for name, body in FENCE.findall(path.read_text(encoding="utf-8")) if name == language]


def commands(path: Path) -> list[str]:
    """Shell lines of a document that can be executed as they stand, comments removed."""
    lines = [line.split("  #")[0].strip() for body in blocks(path, "bash") for line in body.splitlines()]
    return [line for line in lines if line and not line.startswith(("#", *SETUP))]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of its own, with the repository's notebooks where README's commands expect them."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "notebooks").symlink_to(ROOT / "notebooks")
    yield folder
    # What a command has launched, and nobody waits for, would slow the other tests down.
    for process in processes_of(folder / "runs"):
        process.kill()


@pytest.mark.process
@pytest.mark.usefixtures("reports", "embedded_seconds")
def test_readme_commands_run_in_order(place: Path) -> None:
    found = commands(ROOT / "README.md")
    assert len(found) >= 4, "README shows the CLI and papermill"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}
    script = "set -e\n" + "\n".join(f"echo '+' {shlex.quote(line)}\n{line}" for line in found)
    done = subprocess.run(
        ["bash", "-c", script], cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


@pytest.mark.parametrize("path", [p for p in DOCUMENTS if blocks(p, "python")], ids=lambda p: str(p.relative_to(ROOT)))
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


@pytest.mark.process
def test_architecture_names_files_that_are_there() -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    named = re.findall(r"`((?:workbench|tests)/[^`]*)`", text)
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_architecture_explains_twenty_words_on_one_page() -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    glossary = text.split("## Twenty words")[1].split("\n## ")[0]
    words = re.findall(r"^\| (?!word|---)([^|]+) \|", glossary, re.MULTILINE)
    assert len(words) == len(set(words)) == 20
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
