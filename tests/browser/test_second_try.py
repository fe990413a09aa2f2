"""Second tries, in a pytest of its own: the first of them leaves its mark on all that tests share."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SHARED = """
import pytest
from tests.browser.second_try import pytest_runtest_setup

@pytest.fixture(scope="session")
def server():
    print("server begins")
    yield []
    print("server ends")
"""
SUITE = """
import pytest

@pytest.fixture(scope="module")
def page(server, outside):
    print("page begins")
    yield {"typed": [], "server": server, "outside": outside}
    print("page ends")
    assert server == []

def test_before(page):
    assert page["typed"] == []

def test_it(page):
    first = not page["outside"]
    for place in page.values():
        place.append("7.1")
    assert not first
    assert page["typed"] == page["server"] == ["7.1"]
    assert page["outside"] == ["7.1", "7.1"]

def test_after(page):
    assert page["typed"] == ["7.1"]
    page["server"].clear()
"""
OUTSIDE = 'import pytest\n\n@pytest.fixture(scope="session")\ndef outside():\n    return []\n'
ORDER = ["server begins", "page begins", "page ends", "server ends"]


@pytest.mark.process
def test_a_second_try_shares_nothing_of_its_folder_with_the_first(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(OUTSIDE)
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "conftest.py").write_text(SHARED)
    (folder / "test_it.py").write_text(SUITE)
    # It must not take itself for a worker of this session.
    environment = {name: each for name, each in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    command = [sys.executable, "-m", "pytest", "-sq", "--reruns", "1", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert "3 passed, 1 rerun" in done.stdout, done.stdout
    assert re.findall("(?:server|page) (?:begins|ends)", done.stdout) == 2 * ORDER
    # That the first page could not be put away is told, and fails nobody.
    assert "page, as the first try left it, ended with AssertionError" in done.stdout
