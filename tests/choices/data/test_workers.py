"""Worker processes: order, death, and nothing left running."""

from __future__ import annotations

import inspect
import threading

import pytest

from workbench.base.errors import DataError
from workbench.choices.data import harvest, workers
from workbench.choices.data.workers import harvest_files


@pytest.fixture
def files(tmp_path):
    paths = []
    for i in range(30):
        path = tmp_path / f"{i}.md"
        path.write_text(f"This is the text with the number {'x' * i} that we wrote for a test of the order. " * 4)
        paths.append(str(path))
    return paths


@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.process
def test_same_as_in_this_process(files, processes, monkeypatch):
    monkeypatch.setattr(workers, "CHUNK_FILES", 4)
    expected = [[list(d) for d in harvest.documents_of(path)] for path in files]
    assert list(harvest_files(files, processes)) == expected
    assert sum(map(len, expected)) == 30


@pytest.mark.process
def test_a_dead_worker_is_one_error(files, monkeypatch, tmp_path):
    program = tmp_path / "dies.py"
    program.write_text("import sys\nsys.stdin.readline()\nsys.exit(7)\n")
    monkeypatch.setattr(workers.harvest, "__file__", str(program))
    with pytest.raises(DataError, match=r"ended with code 7.*data\.packages"):
        list(harvest_files(files, 2))


@pytest.mark.process
def test_stopping_early_leaves_no_thread(files, monkeypatch):
    monkeypatch.setattr(workers, "CHUNK_FILES", 1)
    before = set(threading.enumerate())
    found = harvest_files(files, 2)
    next(found)
    found.close()
    assert inspect.getgeneratorstate(found) == "GEN_CLOSED"
    assert set(threading.enumerate()) <= before  # others may end meanwhile
