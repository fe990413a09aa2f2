"""Archives: no larger than what is allowed, whatever they are; nothing is left of one that is refused."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from workbench.base.errors import DataError
from workbench.choices.data import archives
from workbench.choices.data.archives import raw_lines
from workbench.choices.data.files import Files
from workbench.choices.data.prepare import prepare

PACK: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstandard.compress}


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("content", [b"\0" * 3_000_000, b"the same line again\n" * 150_000], ids=["no line", "lines"])
def test_what_expands_without_bound_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path, ending: str, content: bytes
) -> None:
    monkeypatch.setattr(archives, "ALWAYS_BYTES", 1 << 20)
    path = tmp_path / f"a.txt.{ending}"
    path.write_bytes(PACK[ending](content))
    with pytest.raises(DataError, match=r"expands to more than 100 times its size and 64 MiB.*raise data.expansion"):
        prepare(Files(paths=(str(path),)), lambda line: None)
    assert [each.name for each in cache.rglob("*") if each.suffix != ".lock" and each.is_file()] == []
    assert b"".join(raw_lines(path, 1 << 20)) == content


@pytest.mark.parametrize("ending", PACK)
def test_lines_are_those_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr(archives, "BLOCK_BYTES", 7)
    monkeypatch.setattr(archives, "_ZSTANDARD_BYTES", 5)
    lines = [b"one\n", b"\n", b"a longer line of it\n", b"\n", b"no end"]
    path = tmp_path / f"a.txt.{ending}"
    path.write_bytes(PACK[ending](b"".join(lines)))
    assert list(raw_lines(path)) == lines


def test_a_short_text_that_repeats_itself_is_none(tmp_path: Path, sentences: Any) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps({"text": "same"}) + "\n" for _ in range(100_000)).encode()))
    assert sum(1 for _ in Files(paths=(str(path),)).documents()) == 100_000
