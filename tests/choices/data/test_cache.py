"""Cache entries: whole or not at all. Damage, a full disk and two processes are tested through test_prepare.py."""

from __future__ import annotations

import threading
import time

import pytest

from workbench.base.errors import DataError
from workbench.choices.data.cache import cache_entry, cached_documents


def quiet(line: str) -> None:
    """Say nothing."""


def fill(folder):
    (folder / "a.txt").write_text("content")
    return {"answer": 42}


def test_built_once(cache):
    folder, content = cache_entry("area", "key", fill, quiet)
    assert folder == cache / "area" / "key"
    assert (content["answer"], content["files"]["a.txt"]["bytes"]) == (42, 7)
    assert cache_entry("area", "key", lambda folder: pytest.fail("built again"), quiet) == (folder, content)


def test_a_build_that_fails_leaves_nothing(cache):
    def fails(folder):
        fill(folder)
        raise DataError("no such text")

    with pytest.raises(DataError, match="no such text"):
        cache_entry("area", "key", fails, quiet)
    assert [path.name for path in (cache / "area").iterdir()] == ["key.lock"]
    assert cache_entry("area", "key", fill, quiet)[1]["answer"] == 42


def test_what_a_killed_builder_left_is_removed(cache):
    left_over = cache / "area" / "key.abc.tmp"
    left_over.mkdir(parents=True)
    (left_over / "half").write_text("x")
    of_another = cache / "area" / "other.abc.tmp"
    of_another.mkdir()
    cache_entry("area", "key", fill, quiet)
    assert not left_over.exists()
    assert of_another.exists()


def test_the_second_waits_and_says_so(cache):
    said: list[str] = []
    building = threading.Event()

    def slow(folder):
        building.set()
        time.sleep(0.3)
        return fill(folder)

    first = threading.Thread(target=cache_entry, args=("area", "key", slow, quiet))
    first.start()
    building.wait(10)
    _, content = cache_entry("area", "key", lambda folder: pytest.fail("built twice"), said.append)
    first.join()
    assert content["answer"] == 42
    assert said == ["another process is preparing the same data; waiting for it"]


TEXTS = [((), "one"), (("package", "module"), "two\nlines"), ((), "Größe 🙂"), ((), "half a pair \ud800"), ((), "")]


def test_documents_are_kept_as_they_are():
    said: list[str] = []
    assert list(cached_documents("area", {"a": 1}, lambda: iter(TEXTS), said.append)) == TEXTS
    assert said == ["5 documents with 9 words collected"]
    again = cached_documents("area", {"a": 1}, lambda: pytest.fail("made again"), said.append)
    assert list(again) == TEXTS
    other = cached_documents("area", {"a": 2}, lambda: iter([((), "other")]), said.append)
    assert list(other) == [((), "other")]
