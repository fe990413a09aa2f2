"""Reading one file: where texts are cut, what a name says. Formats and errors are tested through test_files.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.base.errors import DataError
from workbench.choices.data.reading import cut_text, format_of, legal_endings, read_documents


def test_text_is_cut_at_blank_lines_and_nothing_is_lost():
    text = "".join(f"line {i} of some text\n" + "\n" * (i % 7 == 0) for i in range(500))
    pieces = list(cut_text(iter(text.splitlines(keepends=True)), 300))
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(300 <= len(piece) + 2 <= 640 for piece in pieces[:-1])
    assert list(cut_text(iter(text.splitlines(keepends=True)), 0)) == [text.strip()]
    unbroken = ["0123456789\n"] * 100
    assert max(map(len, cut_text(iter(unbroken), 50))) <= 111


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.txt", "text"), ("a.MD.GZ", "text"), ("a.jsonl.zst", "json"), ("a.json", "json"), ("a.parquet", "parquet"),
        ("a.b.c.ndjson", "json"), ("a.gz", None), ("a", None), ("a.py", None), ("jsonl", None),
    ],
)  # fmt: skip
def test_format_by_name(name, kind):
    assert format_of(Path(name)) == kind


def test_every_legal_ending_is_known():
    assert all(format_of(Path(f"a{ending}")) for ending in legal_endings())


def test_memory_does_not_grow_with_the_file(tmp_path):
    """The first document of a file is there before the rest is read."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "first"}\n' * 100_000 + "not JSON\n")
    documents = read_documents(path, "text", 0)
    assert next(documents) == "first"
    with pytest.raises(DataError, match=r"line 100,001 is not JSON"):
        list(documents)


def test_half_a_surrogate_pair_and_endless_nesting_are_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "fine"}\n{"text": "half \\ud800"}\n')
    with pytest.raises(DataError, match=r"line 2: field 'text' is not Unicode text: a lone surrogate .* character 5"):
        list(read_documents(path, "text", 0))
    path.write_text("[" * 200_000 + "\n")
    with pytest.raises(DataError, match="line 1 is not JSON"):
        list(read_documents(path, "text", 0))
