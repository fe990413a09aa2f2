"""Processes of this package: their surroundings, and what a module says of its failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.base.errors import RunError
from workbench.base.heap_settings import heap_settings
from workbench.launchers.processes import child_environment, module_command, run_module
from workbench.store.folder import RunFolder


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("error: run 'a-run' left no checkpoint", "run 'a-run' left no checkpoint"),
        ("error: the target exists", "run 'a-run': the target exists"),
        ("Traceback:\nValueError: odd", "run 'a-run': ValueError: odd"),
        ("", "run 'a-run': exit code 1"),
    ],
)
def test_the_run_is_named_once(said: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 1, b"", said.encode())
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(RunError) as error:
        run_module(RunFolder(tmp_path / "a-run"), "a.module")
    assert str(error.value) == told


def test_children_import_this_package_and_nothing_of_the_working_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert module_command("a.b", "c") == [sys.executable, "-P", "-m", "a.b", "c"]
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    environment = child_environment(EXTRA="1")
    assert environment["EXTRA"] == "1"
    assert "MPLBACKEND" not in environment, "a trainer draws to files"
    assert environment.items() >= heap_settings(os.environ).items()
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "0")
    assert child_environment()["THP_MEM_ALLOC_ENABLE"] == "0", "what the user has set stands"
    paths = environment["PYTHONPATH"].split(os.pathsep)
    assert paths[-1] == "/elsewhere"
    monkeypatch.setenv("PYTHONPATH", environment["PYTHONPATH"])
    assert child_environment()["PYTHONPATH"] == environment["PYTHONPATH"], "added once, not by every generation"


THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@pytest.mark.skipif(not THP.is_file() or "[never]" in THP.read_text(), reason="this system has no huge pages to give")
@pytest.mark.extended
@pytest.mark.process
def test_large_tensors_of_a_trainer_lie_in_huge_pages() -> None:
    code = (
        "import re, torch; t = torch.zeros(1 << 24); "
        "print(re.search(r'AnonHugePages: +([0-9]+)', open('/proc/self/smaps_rollup').read())[1])"
    )
    command = [sys.executable, "-c", code]
    # 64 MiB, of which ends need not lie on a boundary; a system short of memory may give fewer.
    found = subprocess.run(command, env=child_environment(), capture_output=True, text=True, check=True).stdout
    assert int(found) >= 32 * 1024
