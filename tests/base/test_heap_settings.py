"""What trainers' environments say to the C library: what is added to what, and what it is good for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from workbench.base import heap_settings as module
from workbench.base.heap_settings import FEW_GAPS, HUGE_PAGES, NAMES, TORCH_HUGE_PAGES, heap_settings
from workbench.launchers.processes import child_environment

BOTH = f"{FEW_GAPS}:{HUGE_PAGES}"
STEPS = """
import random, torch
from workbench.ops.free_memory import own_sizes
held = lambda name: own_sizes()[name] - own_sizes()["RssFile"]
torch.set_num_threads(1)
numbers = random.Random(0)
sizes = [numbers.randrange(1 << 14, 1 << 18) for _ in range(150)]
before, small = held("VmRSS"), []
for step in range(30):
    # As a step does: kept forward, let go of backward; what stays is small.
    kept = []
    for size in sizes:
        kept.append(torch.ones(size))
        small.append(torch.ones(6))
    while kept:
        kept.pop() * 2
print((held("VmHWM") - before) / (4 * sum(sizes)))
"""


@pytest.mark.parametrize(
    ("environment", "added", "glibc"),
    [
        ({}, {"GLIBC_TUNABLES": BOTH}, True),
        ({}, {"GLIBC_TUNABLES": FEW_GAPS, "THP_MEM_ALLOC_ENABLE": "1"}, False),
        ({"THP_MEM_ALLOC_ENABLE": "0"}, {"GLIBC_TUNABLES": FEW_GAPS}, True),
        ({"GLIBC_TUNABLES": "glibc.malloc.arena_max=1"}, {"THP_MEM_ALLOC_ENABLE": "1"}, True),
        ({"GLIBC_TUNABLES": "glibc.malloc.arena_max=1", "THP_MEM_ALLOC_ENABLE": "0"}, {}, True),
    ],
)
def test_what_the_user_has_set_stands(
    environment: dict[str, str], added: dict[str, str], glibc: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_has_huge_pages", lambda: glibc)
    assert heap_settings(environment) == added
    assert heap_settings(environment | added) == {}, "a child's child gets the same"


@pytest.mark.parametrize(
    ("said", "there"), [("glibc 2.36", True), ("glibc 2.34", False), ("glibc 2.35.1", True), (None, False)]
)
def test_glibc_asks_for_huge_pages_from_its_version_on(
    said: str | None, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "confstr_names", {"CS_GNU_LIBC_VERSION": 2}, raising=False)
    monkeypatch.setattr(os, "confstr", lambda name: said, raising=False)
    assert (HUGE_PAGES in heap_settings({})["GLIBC_TUNABLES"]) == there
    monkeypatch.setattr(os, "confstr_names", {})
    assert HUGE_PAGES not in heap_settings({})["GLIBC_TUNABLES"]


@pytest.mark.extended
@pytest.mark.skipif("CS_GNU_LIBC_VERSION" not in getattr(os, "confstr_names", ()), reason="not the C library of GNU")
@pytest.mark.process
def test_the_heap_of_a_trainer_has_fewer_gaps_than_that_of_other_processes() -> None:
    def held(environment: dict[str, str]) -> float:
        command = [sys.executable, "-c", STEPS]
        return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)

    ours = child_environment()
    # Held at most over what lives at most: 1.27 and 1.45.
    assert held(ours) < 0.93 * held({name: ours[name] for name in ours if name not in NAMES} | TORCH_HUGE_PAGES)
