"""Marks by cost, checked on a small suite in a pytest of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.costs import pytest_xdist_make_scheduler

SUITE = """
import subprocess, time
import pytest

def test_starts_one_in_secret():
    subprocess.run(["true"])

@pytest.mark.process
def test_starts_one():
    subprocess.run(["true"])

def test_short():
    time.sleep(0.6)
"""
LONG = "def test_long():\n    pass\n"
PROGRAM = """
import sys, pathlib, pytest
from tests import costs
costs.DURATIONS = pathlib.Path("durations.json")
sys.exit(pytest.main(["-v", "-c", "pytest.ini", "-p", "tests.costs", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""
MARKS = "[pytest]\naddopts = --strict-markers\nmarkers =\n  process: x\n  slow: x\n  browser: x\n"


@pytest.mark.process
def test_marks_are_true_and_the_longest_comes_first(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SUITE)
    (tmp_path / "test_last.py").write_text(LONG)
    (tmp_path / "pytest.ini").write_text(MARKS)
    (tmp_path / "durations.json").write_text(json.dumps({"test_last.py::test_long": 2.5}))

    def run(*options: str) -> tuple[int, str]:
        command = [sys.executable, "-c", PROGRAM, *options]
        # It must not take itself for a worker of this session.
        environment = {name: each for name, each in os.environ.items() if not name.startswith("PYTEST_")}
        environment["PYTHONPATH"] = str(Path(__file__).parents[1])
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
        return done.returncode, done.stdout

    code, said = run("--write-durations")
    assert code == 1
    assert "starts a process (subprocess.Popen" in said
    assert "mark it with @pytest.mark.process" in said
    assert "3 passed" in said
    assert "FAILED test_it.py::test_starts_one_in_secret" in said
    assert said.index("::test_long") < said.index("::test_starts")
    assert set(json.loads((tmp_path / "durations.json").read_text())) == {"test_it.py::test_short"}

    (tmp_path / "durations.json").write_text(json.dumps({"test_last.py::test_long": 2.5}))
    code, said = run("-m", "not process and not browser and not slow")
    assert "2 deselected" in said
    assert "::test_short PASSED" in said


def test_a_worker_takes_whole_modules_and_marked_groups() -> None:
    option = SimpleNamespace(dist="loadgroup", loadscopereorder=True)
    config = cast(Any, SimpleNamespace(option=option, getvalue=lambda name: ["popen"]))
    scheduler = pytest_xdist_make_scheduler(config, None)
    assert not option.loadscopereorder, "the order is that of the items"
    units = {"a/test_b.py::Test::test_c[d::e@f]": "a/test_b.py", "a/test_b.py::test_c[d]@browser": "browser"}
    assert {name: scheduler._split_scope(name) for name in units} == units
    option.dist = "load"
    assert pytest_xdist_make_scheduler(config, None) is None
