"""Environments of engines: installed by the real pip from a folder of wheels, refused where they are not whole."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

import workbench
from workbench.base.errors import EngineError
from workbench.choices.execution.environment import STEPS, EngineEnvironment

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
TINY = EngineEnvironment("tiny", (HERE,), ("tinyengine==1.0",), (), ("rival",), "tinyengine", compiles=False)
# Its own test, as real engines have one; it waits for as long as it is told to.
CODE = "import os, time\nprint('tiny is at work', flush=True)\ntime.sleep(float(os.environ.get('TINY_SECONDS', '0')))\n"


def wheel(folder: Path, name: str, version: str) -> None:
    """Write a wheel of one module."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": CODE,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(path, text)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    for name, version in (("tinyengine", "1.0"), ("tinyengine", "0.9"), ("rival", "2.0")):
        wheel(folder, name, version)
    return folder


class Installed(NamedTuple):
    """The tiny engine, and how it became ready: offline first, then killed, then whole.

    Attributes:
        offline, meanwhile: what the first installation failed with, and one beside the second.
        gone_on: what the second said until it was killed.
        problems: before the first installation, and after each.
        said: while the last was made.
    """

    tiny: EngineEnvironment
    offline: str
    gone_on: list[str]
    meanwhile: str
    problems: list[str]
    said: list[str]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Iterator[Installed]:
    """Three installations that go on from each other: an environment takes processor seconds to make."""
    problems, said = [], list[str]()
    with pytest.MonkeyPatch.context() as patch:
        cache = tmp_path_factory.mktemp("cache")
        patch.setenv("WORKBENCH_CACHE", str(cache))
        problems.append(TINY.problem())
        only_from(patch, None)
        with pytest.raises(EngineError) as offline:
            TINY.install(lambda done, line: None)
        problems.append(TINY.problem())
        only_from(patch, wheels)
        patch.setenv("TINY_SECONDS", "600")
        gone_on, meanwhile = killed_at_work()
        problems.append(TINY.problem())
        patch.delenv("TINY_SECONDS")
        # The wheels are there already: nothing is fetched a second time.
        patch.setenv("PIP_FIND_LINKS", str(cache / "nothing"))
        TINY.install(lambda done, line: said.append(f"{done} {line}"))
        problems.append(TINY.problem())
        only_from(patch, wheels)
        yield Installed(TINY, str(offline.value), gone_on, meanwhile, problems, said)


def killed_at_work() -> tuple[list[str], str]:
    """Install the tiny engine in a process that is killed when its test is at work.

    Returns:
        what it said until then, and what a second one met meanwhile.
    """
    said = list[str]()
    code = f"from {__name__} import TINY; TINY.install(lambda done, line: print(line, flush=True))"
    root = Path(workbench.__file__).parents[1]
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=root, start_new_session=True
    ) as installer:
        assert installer.stdout is not None
        for line in installer.stdout:
            said.append(line.strip())
            if "tiny is at work" in line:
                break
        try:
            with pytest.raises(EngineError) as meanwhile:
                TINY.install(lambda done, line: None)
        finally:
            os.killpg(installer.pid, signal.SIGKILL)
    return said, str(meanwhile.value)


def only_from(patch: pytest.MonkeyPatch, wheels: Path | None) -> None:
    """Let pip know one folder of wheels, or nothing but an index that does not answer."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        patch.delenv(name)
    patch.setenv("PIP_CONFIG_FILE", os.devnull)
    if wheels is None:
        # Port 9 of this machine: refused at once, without a network.
        patch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
        patch.setenv("PIP_RETRIES", "0")
    else:
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(wheels))


def pip(environment: EngineEnvironment, *arguments: str) -> None:
    subprocess.run([str(environment.python), "-m", "pip", "--quiet", *arguments], check=True)


@pytest.mark.extended
@pytest.mark.process
def test_a_ready_engine_runs_this_very_package(installed: Installed) -> None:
    tiny, said = installed.tiny, installed.said
    assert any("tiny is at work" in line for line in said)
    assert said[-1] == "4 ready"
    described = tiny.describe()
    assert described["state"] == "ready"
    assert described["python"] == HERE
    command = [str(tiny.ready()), "-P", "-c", "import workbench; print(workbench.__file__)"]
    done = subprocess.run(command, env=os.environ | tiny.variables(), capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).resolve() == Path(workbench.__file__).resolve()
    nothing: list[str] = []
    tiny.install(lambda done, line: nothing.append(line))
    assert nothing == []


@pytest.mark.extended
@pytest.mark.process
def test_other_versions_are_named(installed: Installed) -> None:
    tiny = installed.tiny
    other = replace(tiny, pythons=("2.7", "3.0"))
    assert f"was built for Python {HERE}, its packages need 2.7 or 3.0; run `workbench engines inst" in other.problem()
    pip(tiny, "install", "tinyengine==0.9")
    assert "was built with tinyengine 0.9, it needs 1.0" in tiny.problem()
    with pytest.raises(EngineError, match="workbench engines install tiny"):
        tiny.ready()
    pip(tiny, "install", "tinyengine==1.0", "rival==2.0")
    assert "has rival beside tinyengine==1.0" in tiny.problem()
    pip(tiny, "uninstall", "--yes", "rival")
    assert tiny.problem() == ""


@pytest.mark.extended
@pytest.mark.process
def test_a_python_that_is_gone_is_told(installed: Installed) -> None:
    tiny = installed.tiny
    aside = tiny.python.with_name("aside")
    tiny.python.rename(aside)
    assert "no longer starts" in tiny.problem()
    aside.rename(tiny.python)
    assert tiny.problem() == ""


@pytest.mark.extended
@pytest.mark.process
def test_an_engine_in_use_is_not_removed(installed: Installed) -> None:
    tiny = installed.tiny
    with subprocess.Popen([str(tiny.python), "-c", "input()"], stdin=subprocess.PIPE) as user:
        with pytest.raises(EngineError, match=f"in use by process {user.pid}"):
            tiny.remove()
        user.kill()
    assert tiny.problem() == ""


@pytest.mark.extended
@pytest.mark.process
def test_offline_then_killed_then_whole(installed: Installed) -> None:
    """Each time it says what is the matter, and goes on where it stopped."""
    nothing, offline, killed, whole = installed.problems
    assert "is not installed; run `workbench engines install tiny`" in nothing
    assert re.search(r"could not be fetched.*tinyengine.*PIP_FIND_LINKS.*goes on where it", installed.offline)
    assert "half installed" in offline
    assert installed.gone_on[0] == STEPS[1], "the environment is there, and nothing is in it yet"
    assert installed.said[0] == f"0 {STEPS[0]}", "what was installed into one that was killed is not trusted"
    assert "by another process" in installed.meanwhile
    assert "half installed" in killed
    assert whole == ""


@pytest.mark.extended
@pytest.mark.process
def test_a_ready_engine_is_removed(installed: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = installed.tiny.folder
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    shutil.copytree(ready, TINY.folder, symlinks=True)
    assert TINY.problem() == ""
    assert TINY.remove()
    assert not TINY.remove()
    assert not TINY.folder.exists()


@pytest.mark.process
def test_what_is_missing_is_told_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    with pytest.raises(EngineError, match=r"needs Python 2\.7 \(.*: \d.*\).*--python PATH"):
        replace(TINY, pythons=("2.7",)).install(lambda done, line: None)
    with pytest.raises(EngineError, match="/dev/null/python: none with venv"):
        TINY.install(lambda done, line: None, "/dev/null/python")
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(EngineError, match="no C\\+\\+ compiler; install one"):
        replace(TINY, compiles=True).install(lambda done, line: None)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(2**40, 2**40, 2**28))
    with pytest.raises(EngineError, match=r"takes 3 GiB while it is installed, 0\.2 GiB are free"):
        TINY.install(lambda done, line: None)
    assert not TINY.folder.exists()
