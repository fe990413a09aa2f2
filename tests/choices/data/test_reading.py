"""Reading one file: where texts are cut, what a name says. Formats and errors are tested through test_files.py."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from workbench.base.errors import DataError
from workbench.choices.data.reading import cut_text, format_of, read_documents


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


def test_line_ends_of_every_system_give_the_same_text(tmp_path):
    """A vocabulary that had learned a carriage return would score another text."""
    lines = ["first line", "second", "", "after a blank one"] * 40
    found = []
    for number, end in enumerate(("\n", "\r\n", "\r")):
        (tmp_path / f"{number}.txt").write_bytes(end.join(lines).encode())
        (tmp_path / f"{number}.jsonl").write_text(json.dumps({"text": end.join(lines)}) + end)
        found += [list(read_documents(tmp_path / f"{number}.{kind}", "text", 0)) for kind in ("txt", "jsonl")]
    (tmp_path / "3.txt").write_bytes("\r\n".join(lines).encode())
    assert all(documents == ["\n".join(lines)] for documents in found)
    (tmp_path / "lf.txt").write_bytes("\n".join(lines).encode())
    assert list(read_documents(tmp_path / "3.txt", "text", 60)) == list(read_documents(tmp_path / "lf.txt", "text", 60))


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_control_characters_of_a_wrong_conversion_are_refused_with_the_way_out(tmp_path, name):
    """Quotes of cp1252 that were read as latin1."""
    text = "\u201cquoted\u201d".encode("cp1252").decode("latin1")
    line = f'{{"text": "{text}"}}\n'
    (tmp_path / name).write_text(line * 7 + '{"text": "fine"}\n' * 10_000, encoding="utf-8")
    list(read_documents(tmp_path / name, "text", 0))
    (tmp_path / name).write_text('{"text": "fine"}\n' + line * 8, encoding="utf-8")
    with pytest.raises(DataError, match=r"line 9 holds 16 control characters .*iconv -f cp1252 -t utf-8"):
        list(read_documents(tmp_path / name, "text", 0))


@pytest.mark.parametrize(("name", "mark"), [("a.csv", ","), ("a.tsv", "\t"), ("a.csv.gz", ","), ("a.tsv.xz", "\t")])
def test_tables_give_their_column(tmp_path, name, mark):
    """As Python's own writer writes them: quotes, separators and line ends within a text."""
    texts = ["plain", f'with "quotes"{mark} and a separator', "two\nlines", "", "last"]
    packed = io.StringIO()
    writer = csv.writer(packed, delimiter=mark, lineterminator="\n")
    writer.writerows([("id", "body"), *enumerate(texts)])
    pack = {".gz": gzip.compress, ".xz": lzma.compress}.get(Path(name).suffix, bytes)
    (tmp_path / name).write_bytes(pack(packed.getvalue().encode()))
    assert list(read_documents(tmp_path / name, "body", 0)) == texts
    with pytest.raises(DataError, match=r"unknown value 'text'|'text'.*id, body|legal.*body"):
        list(read_documents(tmp_path / name, "text", 0))


@pytest.mark.parametrize(
    ("content", "message"),
    [("text,b\nx,y\nx\n", "line 3 has 1 columns, and the first row names 2"),
     ('text,b\n"x"y,z\n', "line 2 is no row of a table"), ('text\n"open\n', "no row of a table")],
)  # fmt: skip
def test_tables_that_are_broken_are_refused(tmp_path, content, message):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        list(read_documents(tmp_path / "a.csv", "text", 0))


@pytest.mark.parametrize(
    ("values", "kind", "held"),
    [([["a"]], "list<", "list"), ([1.5], "double", "number"), ([{"a": 1}], "struct<", "object")],
)
def test_a_column_without_text_lists_the_columns_and_their_types(
    tmp_path: Path, values: list[object], kind: str, held: str
) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"id": [7], "text": values, "title": ["t"]}), path)
    with pytest.raises(
        DataError, match=rf"row 1: field 'text' is of type {held}.* id \(int64\), text \({kind}.*title \(string"
    ):
        list(read_documents(path, "text", 0))
    with pytest.raises(DataError, match=r"unknown value 'body'.* id \(int64\), text \(.*title \(string\)"):
        list(read_documents(path, "body", 0))
    # Null is no document.
    parquet.write_table(pyarrow.table({"text": pyarrow.array([None, None]), "id": [1, 2]}), path)
    assert list(read_documents(path, "text", 0)) == ["", ""]


def test_a_field_that_holds_no_text_lists_what_there_is(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": 1, "text": ["a"], "title": "t", "note": null}\n')
    with pytest.raises(DataError, match=r"it has: id \(number\), text \(list\), title \(text\), note \(null\)"):
        list(read_documents(tmp_path / "a.jsonl", "text", 0))
