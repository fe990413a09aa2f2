"""The committed bundle: made from the sources beside it, self-contained, with its licence notice."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import workbench.jupyter

UI = Path(workbench.jupyter.__file__).parent
FRONTEND, STATIC = UI / "frontend", UI / "static"
NODE_TESTS = sorted(map(str, (Path(__file__).parents[1] / "frontend").glob("*.test.mjs")))
# One process for all: Node gives each file one of its own, which costs more than its tests.
RUN_ALL = "for (const file of process.argv.slice(1)) await import(file);"


def fingerprint() -> str:
    """As ``build.mjs`` computes it: every path and its bytes, sorted."""
    inside = [path.relative_to(FRONTEND).as_posix() for path in (FRONTEND / "src").rglob("*") if path.is_file()]
    digest = hashlib.sha256()
    for path in sorted([*inside, "build.mjs", "package.json", "package-lock.json"]):
        digest.update(path.encode() + b"\0" + (FRONTEND / path).read_bytes() + b"\0")
    return digest.hexdigest()


@pytest.fixture(scope="module")
def bundle() -> str:
    return (STATIC / "monitor.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(STATIC.glob("*.js")), ids=lambda path: path.name)
def test_every_bundle_is_one_module_of_these_sources(path: Path) -> None:
    code = path.read_text(encoding="utf-8")
    stale = "the sources changed: run `npm ci && npm run build` in workbench/jupyter/frontend"
    assert code.startswith(f"/* sources sha256:{fingerprint()}"), stale
    assert len(re.findall(r"export\s*(\{[\w$]+ as default\}|default\b)", code)) == 1
    loads = r"" if path.stem == "loader" else r"|\bimport\s*[\"'{(]"
    assert not re.search(rf"https?://(?!www\.w3\.org/){loads}", code.partition("*/")[2])


def test_the_extension_of_jupyterlab_is_made_of_these_sources_and_says_so() -> None:
    folder = STATIC / "labextension"
    manifest = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    script, _, version = manifest["jupyterlab"]["_build"]["load"].partition("?v=")
    assert fingerprint().startswith(version), "the sources changed: run `npm ci && npm run build`"
    assert len(version) == 16
    code = (folder / script).read_text(encoding="utf-8")
    assert code.startswith(f"/* sources sha256:{fingerprint()}")
    assert not re.search(r"https?://(?!www\.w3\.org/)|XMLHttpRequest|WebSocket", code.partition("*/")[2])
    # Loaded with every page of JupyterLab; the live view comes when a run is watched.
    assert len(code) < 40_000
    assert "_JUPYTERLAB" in code


def test_licence_notices_travel_with_the_code_they_cover(bundle: str) -> None:
    css = (STATIC / "monitor.css").read_text(encoding="utf-8")
    for text in (bundle[:2000], css[:2000], (STATIC / "THIRD_PARTY.txt").read_text()):
        assert "uPlot" in text
        assert "The MIT License" in text
        assert "Leon Sorokin" in text


def test_the_page_loads_nothing_from_elsewhere(bundle: str) -> None:
    code = bundle.partition("*/")[2]
    assert not re.search(r"https?://(?!www\.w3\.org/)", code)
    assert not re.search(r"\bimport\s*\(|\bimport\s*[\"'{]|XMLHttpRequest|WebSocket", code)
    # One question goes out: to the page's own Jupyter server (server.test.js proves that it is no other).
    assert len(re.findall(r"\bfetch\((?!\.\.\.)", code)) == 1
    assert re.search(r"\bfetch\(`\$\{this\.base\}", code)
    assert len(bundle) < 210_000


def test_names_and_events_never_become_markup() -> None:
    for path in (FRONTEND / "src").rglob("*.js"):
        code = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", code), path.name


def test_the_lock_file_names_no_registry() -> None:
    lock = (FRONTEND / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
    assert '"integrity"' in lock


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
@pytest.mark.process
def test_the_sources_pass_their_own_tests() -> None:
    command = ["node", "--input-type=module", "-e", RUN_ALL, *NODE_TESTS]
    done = subprocess.run(command, cwd=FRONTEND, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert int(re.search(r"# pass (\d+)", done.stdout)[1]) >= 200
