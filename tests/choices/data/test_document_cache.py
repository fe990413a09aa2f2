"""Documents kept between two processes."""

from __future__ import annotations

import pytest

from workbench.base.errors import DataError
from workbench.choices.data.document_cache import cached_documents

TEXTS = [((), "one"), (("package", "module"), "two\nlines"), ((), "Größe 🙂"), ((), "half a pair \ud800"), ((), "")]


def test_kept_as_they_are():
    said: list[str] = []
    assert list(cached_documents("area", {"a": 1}, lambda: iter(TEXTS), said.append)) == TEXTS
    assert said == ["5 documents with 9 words collected"]
    again = cached_documents("area", {"a": 1}, lambda: pytest.fail("made again"), said.append)
    assert list(again) == TEXTS
    other = cached_documents("area", {"a": 2}, lambda: iter([((), "other")]), said.append)
    assert list(other) == [((), "other")]


def test_a_source_that_breaks_off_leaves_nothing(cache):
    def breaks():
        yield (), "one"
        raise DataError("broke off")

    with pytest.raises(DataError, match="broke off"):
        cached_documents("area", {}, breaks, lambda line: None)
    assert [path.suffix for path in (cache / "area").iterdir()] == [".lock"]
