"""Images for Binder and JupyterHub: both install by one list, whose commands run in a clean environment."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.documents import ROOT
from tests.packages.environments import TORCH, Environment, interpreter

LIST = ROOT / "binder" / "postBuild"


def instructions(path: Path) -> list[tuple[str, str]]:
    """Instructions of a Dockerfile with their arguments, comments left out."""
    lines = path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    parts = [line.partition(" ") for line in lines if line.strip() and not line.startswith("#")]
    return [(name, rest.strip()) for name, _, rest in parts]


def test_the_image_for_jupyterhub_installs_by_binders_list() -> None:
    found = instructions(ROOT / "Dockerfile")
    assert found[0][0] == "FROM"
    assert {name for name, _ in found} <= {"FROM", "USER", "RUN", "COPY", "WORKDIR", "ENV"}
    runs = [rest for name, rest in found if name == "RUN"]
    assert f"bash {LIST.relative_to(ROOT)}" in runs
    assert not any("pip install" in rest for rest in runs), "packages are named in one place"
    users = [rest for name, rest in found if name == "USER"]
    assert users[-1] == "${NB_UID}", "learners are not root"


def test_the_list_takes_the_versions_that_were_tested() -> None:
    lines = [line for line in LIST.read_text(encoding="utf-8").splitlines() if "pip install" in line]
    assert all("-c constraints.txt" in line for line in lines)
    assert TORCH in lines[0]


@pytest.mark.extended
@pytest.mark.process
@pytest.mark.timeout(3600)
def test_the_list_installs_in_a_clean_environment(tmp_path: Path) -> None:
    """The command that both images run, in a copy of the tracked files; the image itself is not built here."""
    environment = Environment.of(interpreter("3.11"), tmp_path / "venv")
    clone = tmp_path / "clone"
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, clone / name)
    path = f"{environment.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PATH": path}
    done = subprocess.run(
        ["bash", "binder/postBuild"], cwd=clone, env=variables, capture_output=True, text=True, timeout=3000
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert environment.run("workbench", "--version").stdout.startswith("workbench ")
    servers = environment.run("jupyter", "server", "extension", "list")
    assert "workbench.jupyter.server" in servers.stdout + servers.stderr
