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


@pytest.mark.parametrize(
    ("free", "grade", "way"), [(15, "good", ""), (9, "beware", "WORKBENCH_HOLD=off"), (6, "beware", "fewer learners")]
)
def test_memory_counts_kernels_and_what_they_hold_ready(
    free: float, grade: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two runs, their server, and twenty times a kernel (0.3) and the process that it holds ready (0.3).
    monkeypatch.setattr(machine, "free_bytes", lambda device: int(free * machine.GIB))
    monkeypatch.setattr(machine, "physical_cores", lambda: 2)
    check = machine._memory(20)
    assert check.grade == grade
    assert "20 kernels and 2 runs take about 8.1 GiB, and 6.0 more" in check.said
    assert way in check.way


def test_the_verdict_names_what_is_to_be_done() -> None:
    assert verdict([Check("a", "good", "")]) == "This machine is fit"
    assert verdict([Check("a", "beware", "", "do"), Check("b", "bad", "", "do")]).endswith("yet: b")
