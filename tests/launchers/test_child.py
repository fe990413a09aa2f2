"""What a module in a process of its own says of its failure."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from workbench.base.errors import RunError
from workbench.launchers.child import run_module
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
