"""A Python environment of its own for an engine whose packages do not go together with the user's.

Built by ``workbench engines install NAME`` below the cache folder, with nothing but ``venv`` and ``pip`` and whatever
index or folder of wheels pip is set to use. An installation that was killed goes on where it stopped: wheels that were
fetched stay, the environment itself is made anew unless nothing was installed into it yet, and ``engine.json``, which
is written last, says that it has passed its own test.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

from workbench.base.cache_folder import cache_folder
from workbench.base.errors import EngineError
from workbench.base.files import write_bytes

Say = Callable[[int, str], None]
"""Called with the number of steps done and a line on what happens now."""

STEPS = ("making the environment", "fetching packages", "installing packages", "compiling and testing")
"""Stages of an installation, in this order."""

FREE_GIB = 3.0
"""Bytes of disk that an installation takes at its largest, wheels included (measured: 2.1 GiB)."""

_PROBE = """
import importlib.metadata as m, json, sys
found = {d.metadata["Name"].lower(): d.version for d in m.distributions() if d.metadata["Name"]}
print(json.dumps({"python": "%d.%d" % sys.version_info[:2], "packages": found}))
"""


@dataclass(frozen=True)
class EngineEnvironment:
    """The environment of an engine: its contents, and building, looking at and removing it.

    Attributes:
        name: of the engine.
        pythons: versions of Python that its packages have wheels for.
        packages: in exactly these versions, ``name==version``.
        shared: packages that this one imports, in the versions of the Python that installs.
        foreign: distributions that must not stand beside them.
        test: module that is run there last; it completes the environment and proves that it works.
        compiles: the test needs a C++ compiler.
    """

    name: str
    pythons: tuple[str, ...]
    packages: tuple[str, ...]
    shared: tuple[str, ...]
    foreign: tuple[str, ...]
    test: str
    compiles: bool = True

    @property
    def folder(self) -> Path:
        """Everything of it; to be deleted as a whole."""
        return cache_folder() / "engines" / self.name

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "venv" / "bin" / "python"

    @property
    def way_out(self) -> str:
        """Say how to solve a problem."""
        return f"run `workbench engines install {self.name}`"

    def problem(self) -> str:
        """Return the reason why nothing can be trained there, with the way out; empty when all is well."""
        return self.lacking() or self._problem_of(self._probe())

    def lacking(self) -> str:
        """Say that it is not, or half installed; empty where it is. Starts no process; :meth:`problem` does."""
        engine = f"engine '{self.name}'"
        if not self.folder.exists():
            return f"{engine} is not installed; {self.way_out}"
        if not self._finished.exists():
            return f"{engine} is half installed ({self.folder}); {self.way_out} again, it goes on where it stopped"
        return ""

    def _problem_of(self, found: dict[str, Any] | None) -> str:
        """Return the problem of a finished environment, from the findings of :meth:`_probe`; empty without one."""
        engine, anew = f"engine '{self.name}'", f"{self.way_out} again, it is then built anew"
        if found is None:
            return f"the Python of {engine} no longer starts ({self.python}); {anew}"
        if found["python"] not in self.pythons:
            legal = " or ".join(self.pythons)
            return f"{engine} was built for Python {found['python']}, its packages need {legal}; {anew}"
        for package in self.packages:
            name, _, version = package.partition("==")
            there = found["packages"].get(name.lower(), "missing")
            # "2.13.0+cpu": where a build comes from does not matter.
            if there.partition("+")[0] != version:
                return f"{engine} was built with {name} {there}, it needs {version}; {anew}"
        if beside := [name for name in self.foreign if name in found["packages"]]:
            return f"{engine} has {', '.join(beside)} beside {self.packages[-1]}: they share one folder; {anew}"
        return ""

    def ready(self) -> Path:
        """Return its interpreter, to train with.

        Raises:
            EngineError: it is not installed, half installed, or of another Python or other packages.
        """
        if problem := self.problem():
            raise EngineError(problem)
        return self.python

    def variables(self) -> dict[str, str]:
        """Return the variables that a process there needs to import this very package, and nothing else from here."""
        package = Path(__file__).resolve().parents[2]
        # A folder with a link in it, not the package's parent: site-packages would bring along all that is in there.
        link = self.folder / "sources" / hashlib.sha256(str(package).encode()).hexdigest()[:12] / package.name
        if not link.exists():
            link.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                link.symlink_to(package)
        return {"PYTHONPATH": str(link.parent)}

    def describe(self) -> dict[str, Any]:
        """For lists: ``name``, ``state`` (ready, or the problem), ``folder``, ``python``, ``packages``, ``bytes``."""
        found = self._probe() if self.folder.exists() else None
        problem = self._problem_of(found) if self._finished.exists() else self.problem()
        files = (path for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink())
        return {
            "name": self.name,
            "state": problem or "ready",
            "folder": str(self.folder) if self.folder.exists() else None,
            "python": found["python"] if found else None,
            "packages": list(self.packages),
            "bytes": sum(path.stat().st_size for path in files),
        }

    def install(self, say: Say, python: str | None = None) -> None:
        """Build it, or go on building it; one that is ready is left alone.

        Args:
            say: told about the progress.
            python: the interpreter to build it from; None for this one, or else one on the PATH that will do.

        Raises:
            EngineError: no fitting Python, no compiler, no space, no packages to be had, or the test failed.
        """
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with self._lock():
            if not self.problem():
                return
            base = self._base(python)
            self._check_machine()
            # Whatever an earlier state claims: it was found wanting, and is not to be trusted while this goes on.
            self._finished.unlink(missing_ok=True)
            requirements = [*self.packages, *self._shared_versions()]
            self.folder.mkdir(exist_ok=True)
            self._make(base, say)
            self._fetch(requirements, say)
            self._fill(requirements, say)
            say(3, STEPS[3])
            self._run([str(self.python), "-P", "-m", self.test], say, 3, "its own test failed")
            write_bytes(self._finished, json.dumps({"packages": requirements}).encode())
            shutil.rmtree(self._wheels, ignore_errors=True)
            if problem := self.problem():
                raise EngineError(problem)
            say(4, "ready")

    def remove(self) -> bool:
        """Delete it; whether there was one.

        Raises:
            EngineError: a process is running in it, or it is being installed.
        """
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with self._lock():
            if not self.folder.exists():
                return False
            users = [each.pid for each in psutil.process_iter(["cmdline"]) if self._runs(each.info["cmdline"])]
            if users:
                pids = ", ".join(map(str, users))
                raise EngineError(f"engine '{self.name}' is in use by process {pids}; stop that run first")
            # First: what is left of an interrupted removal must not look whole.
            self._finished.unlink(missing_ok=True)
            shutil.rmtree(self.folder)
            return True

    @property
    def _finished(self) -> Path:
        return self.folder / "engine.json"

    @property
    def _wheels(self) -> Path:
        return self.folder / "wheels"

    def _runs(self, command: list[str] | None) -> bool:
        return command is not None and command[:1] == [str(self.python)]

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        try:
            with FileLock(self.folder.with_name(self.name + ".lock"), timeout=0):
                yield
        except Timeout:
            raise EngineError(f"engine '{self.name}' is being installed or removed by another process") from None

    def _probe(self) -> dict[str, Any] | None:
        with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
            command = [str(self.python), "-I", "-c", _PROBE]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
            found: dict[str, Any] = json.loads(done.stdout)
            return found
        return None

    def _shared_versions(self) -> list[str]:
        """The same tokens and the same rounding there as here."""
        return [f"{name}=={importlib.metadata.version(name)}" for name in self.shared]

    def _base(self, asked: str | None) -> str:
        """Return an interpreter of a version that has wheels."""
        names = [asked] if asked else [sys.executable, *(f"python{version}" for version in self.pythons)]
        versions = {name: self._version(name) for name in names}
        fitting = [name for name, version in versions.items() if version in self.pythons]
        if not fitting:
            found = ", ".join(f"{name}: {version or 'none with venv and pip'}" for name, version in versions.items())
            raise EngineError(
                f"engine '{self.name}' needs Python {' or '.join(self.pythons)} ({found}), its packages have no wheels "
                f"for others; name one with `workbench engines install {self.name} --python PATH`"
            )
        return fitting[0]

    def _version(self, python: str) -> str:
        """Return the version of an interpreter that can make environments, as ``3.11``; empty for any other."""
        command = [python, "-I", "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"]
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
        return ""

    def _check_machine(self) -> None:
        free = shutil.disk_usage(self.folder.parent).free / 2**30
        if free < FREE_GIB:
            raise EngineError(
                f"engine '{self.name}' takes {FREE_GIB:g} GiB while it is installed, {free:.1f} GiB are free in "
                f"{self.folder.parent}; free some, or set WORKBENCH_CACHE to another disk"
            )
        if self.compiles and not shutil.which(os.environ.get("CXX") or "c++"):
            raise EngineError(
                f"engine '{self.name}' compiles a small extension, and there is no C++ compiler; install one (Debian "
                "and Ubuntu: `apt install g++`), or name it in the variable CXX"
            )

    @property
    def _empty(self) -> Path:
        """In an environment that is whole and into which nothing was installed; names the Python that it is made of."""
        return self.folder / "venv" / "empty"

    def _make(self, base: str, say: Say) -> None:
        # It takes seconds, and who was offline tries again.
        with contextlib.suppress(OSError):
            if self._empty.read_text() == base and self._probe():
                return
        say(0, STEPS[0])
        # Anew: what a killed pip left in it would pass for installed.
        self._run([base, "-m", "venv", "--clear", str(self.folder / "venv")], say, 0, "no environment was made")
        write_bytes(self._empty, base.encode())

    def _fetch(self, requirements: list[str], say: Say) -> None:
        listed, wanted = self._wheels / "complete.json", [*requirements, self._version(str(self.python))]
        with contextlib.suppress(OSError, ValueError):
            if json.loads(listed.read_text()) == wanted:
                return
        say(1, STEPS[1])
        command = ["download", "--only-binary", ":all:", "--dest", str(self._wheels), *requirements]
        self._pip(command, say, 1, "its packages could not be fetched")
        write_bytes(listed, json.dumps(wanted).encode())

    def _fill(self, requirements: list[str], say: Say) -> None:
        say(2, STEPS[2])
        self._empty.unlink(missing_ok=True)
        command = ["install", "--no-index", "--find-links", str(self._wheels), "--no-warn-script-location"]
        self._pip([*command, *requirements], say, 2, "its packages could not be installed")

    def _pip(self, command: list[str], say: Say, step: int, failure: str) -> None:
        full = [str(self.python), "-m", "pip", "--disable-pip-version-check", "--no-input", *command]
        self._run(full, say, step, failure)

    def _run(self, command: list[str], say: Say, step: int, failure: str) -> None:
        """Run a step; its lines are told as they come.

        Raises:
            EngineError: it failed; with what it said last, errors first.
        """
        # What points elsewhere than into this environment; where pip finds packages stays as the user has set it.
        hidden = ("PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV")
        outside = {name: value for name, value in os.environ.items() if name not in hidden}
        said: deque[str] = deque(maxlen=40)
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", env={**outside, **self.variables()}, cwd=self.folder,
        ) as child:  # fmt: skip
            try:
                assert child.stdout is not None
                for line in child.stdout:
                    if line.strip():
                        said.append(line.strip())
                        say(step, said[-1])
            except BaseException:
                child.kill()
                raise
        if child.returncode:
            errors = [line for line in said if "ERROR" in line or "Error" in line] or list(said)
            last = " / ".join(errors[-2:]) or f"exit code {child.returncode}"
            reach = (
                "; pip takes them from the index that it is set to use, or offline from a folder of wheels "
                f"(PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER): {', '.join(self.packages)} and what they need"
                if step == 1
                else ""
            )
            raise EngineError(
                f"engine '{self.name}' is not installed, {failure}: {last}{reach}; then {self.way_out} again, it goes "
                "on where it stopped"
            )
