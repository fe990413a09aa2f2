"""The checks before a workshop."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from workbench.workshop import machine
from workbench.workshop.machine import Check, check_machine, verdict


@pytest.mark.process
def test_this_machine_is_described_in_one_line_each(tmp_path: Path) -> None:
    checks = check_machine(tmp_path, 4)
    names = [check.name for check in checks]
    assert {"cores", "memory", "python", "torch", "jupyterlab", "anywidget", "server extension"} <= set(names)
    assert all("\n" not in str(check) for check in checks)
    assert all(check.way for check in checks if check.grade != "good")


@pytest.mark.process
def test_too_little_memory_no_queue_and_a_full_disk_are_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "free_bytes", lambda device: machine.GIB)
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: SimpleNamespace(free=machine.GIB // 2))
    monkeypatch.setenv("WORKBENCH_QUEUE", "off")
    bad = {check.name for check in check_machine(tmp_path, 4) if check.grade == "bad"}
    assert bad == {"memory", "disk, runs folder", "disk, cache", "queue"}


def test_the_verdict_names_what_is_to_be_done() -> None:
    assert verdict([Check("a", "good", "")]) == "This machine is fit"
    assert verdict([Check("a", "beware", "", "do"), Check("b", "bad", "", "do")]).endswith("yet: b")
