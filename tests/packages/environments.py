"""Environments made from nothing but built packages: no clone, no Node, no compiler on their path."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.documents import ROOT

CONSTRAINTS = ROOT / "constraints.txt"
TORCH = re.search(r'"(torch==[\d.]+)"', (ROOT / "Makefile").read_text(encoding="utf-8"))[1]  # type: ignore[index]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_PASSED = ("SSL_CERT", "REQUESTS_CA", "PIP_", "http", "HTTP", "no_proxy", "NO_PROXY")


@dataclass(frozen=True)
class Environment:
    """A virtual environment.

    Attributes:
        folder: the environment.
        home: the home and working folder of what runs in it.
    """

    folder: Path
    home: Path

    @classmethod
    def of(cls, python: str, folder: Path) -> Environment:
        """Make one with an interpreter."""
        subprocess.run([python, "-m", "venv", str(folder)], check=True, capture_output=True, timeout=900)
        home = folder.with_name(f"{folder.name}-home")
        home.mkdir()
        return cls(folder, home)

    def install(self, *what: str, seconds: float = 1500, loose: str = "") -> None:
        """Install with this project's exact versions; that of ``loose``, the name of a package, is left to pip."""
        pinned = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
        exact = self.home / "constraints.txt"
        exact.write_text("\n".join(line for line in pinned if not loose or not line.startswith(f"{loose}==")))
        done = self.run("python", "-m", "pip", "install", "-q", "-c", str(exact), *what, seconds=seconds)
        assert done.returncode == 0, done.stderr[-3000:]

    def run(self, program: str, *arguments: str, seconds: float = 300) -> subprocess.CompletedProcess[str]:
        """Run one of its programs, which finds nothing but what is installed here."""
        variables = {name: value for name, value in os.environ.items() if name.startswith(_PASSED)}
        variables |= {"HOME": str(self.home), "PATH": str(self.folder / "bin"), "OMP_NUM_THREADS": "1"}
        command = [str(self.folder / "bin" / program), *arguments]
        return subprocess.run(
            command, cwd=self.home, env=variables, capture_output=True, text=True, errors="replace", timeout=seconds
        )


def interpreter(version: str) -> str:
    """Return a Python of a version, such as ``3.12``; the test is skipped where there is none."""
    if sys.version.startswith(f"{version}."):
        return str(getattr(sys, "_base_executable", sys.executable))
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for candidate in (f"python{version}", *map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))):
        try:
            said = subprocess.run([candidate, "--version"], capture_output=True, text=True, timeout=30).stdout
        except OSError:
            continue
        if said.startswith(f"Python {version}."):
            return candidate
    pytest.skip(f"there is no Python {version} on this machine")


def built(folder: Path) -> dict[str, Path]:
    """Build what ``make packages`` builds; returns the files by package and kind."""
    pytest.importorskip("pyproject_hooks", reason="packages are built by `build`: pip install -e '.[dev]'")
    for package in (".", "kernels_ext"):
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), package]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    names = {"workbench": "workbench-", "kernels": "workbench_kernels-"}
    return {
        f"{name}{suffix}": next(folder.glob(f"{prefix}*{suffix}"))
        for name, prefix in names.items()
        for suffix in (".whl", ".tar.gz")
    }
