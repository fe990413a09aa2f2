"""Text that is no Unicode: refused with its place, left out or replaced, counted and told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from workbench.base.errors import DataError
from workbench.choices.data.files import Files
from workbench.choices.data.prepare import prepare

GOOD = "plain text"
HALF = '{"text": "half \\ud800 here"}'


def write(path: Path) -> None:
    """Three records, of which the second is broken: a byte of latin1, in JSON half a surrogate pair as well."""
    if path.suffix == ".parquet":
        broken = pyarrow.array([b"plain text", b"caf\xe9", b"plain text"]).view(pyarrow.string())
        parquet.write_table(pyarrow.table({"text": broken}), path)
    elif path.suffix == ".jsonl":
        lines = [json.dumps({"text": GOOD}).encode(), b'{"text": "caf\xe9"}', json.dumps({"text": GOOD}).encode()]
        path.write_bytes(b"\n".join([*lines, HALF.encode()]) + b"\n")
    elif path.suffix == ".csv":
        path.write_bytes(b"text\nplain text\ncaf\xe9\nplain text\n")
    else:
        path.write_bytes(b"plain text\n\ncaf\xe9\n\nplain text\n")


@pytest.mark.parametrize(
    ("name", "place"), [("a.txt", "line 3"), ("a.jsonl", "line 2"), ("a.csv", "line 3"), ("a.parquet", "row 2")]
)
def test_broken_bytes_are_refused_skipped_or_replaced(tmp_path: Path, name: str, place: str) -> None:
    write(tmp_path / name)

    def read(rule: str) -> list[str]:
        data = Files(paths=(str(tmp_path),), bad_text=rule, document_characters=0)
        return [line for text in data.documents() for line in text.split("\n") if line]

    with pytest.raises(DataError, match=rf"{name}'.*{place}.*set data.bad_text to skip or replace"):
        read("refuse")
    assert read("skip") == [GOOD, GOOD]
    assert read("replace")[:3] == [GOOD, "caf\ufffd", GOOD]
    if name == "a.jsonl":
        assert read("replace")[3] == "half \ufffd here"
    said: list[str] = []
    Files(paths=(str(tmp_path),), bad_text="skip").collect(said.append)
    count = "2 places" if name == "a.jsonl" else "1 place"
    assert len(said) == 1
    assert said[0].startswith(f"data.bad_text=skip: {count} without Unicode text left out: '{tmp_path / name}' {place}")


def test_whole_text_is_the_same_under_every_rule(tmp_path: Path) -> None:
    """Among it a replacement mark that stands in the file, letters of many bytes, a mark at the start."""
    text = "\ufeffZwölf 你好 \ufffd \u0085 ok\r\nnext\n"
    (tmp_path / "a.txt").write_bytes(text.encode())
    found = [list(Files(paths=(str(tmp_path),), bad_text=rule).documents()) for rule in ("refuse", "skip", "replace")]
    assert found[0] == found[1] == found[2]


def test_letters_of_16_bits_and_controls_follow_the_rule(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("wide\n".encode("utf-16le") + "bad \x93quotes\x94\n".encode() + b"good\n")
    data = Files(paths=(str(tmp_path),), bad_text="replace")
    assert list(data.documents()) == ["w\ufffdi\ufffdd\ufffde\ufffd\n\ufffdbad \ufffdquotes\ufffd\ngood"]
    assert not list(data.problems_here())
    (skipped,) = data.model_copy(update={"bad_text": "skip"}).documents()
    assert skipped == "good"


def test_the_rule_is_part_of_the_texts_name_where_it_is_another(tmp_path: Path) -> None:
    write(tmp_path / "a.txt")
    plain, skip = (Files(paths=(str(tmp_path),), bad_text=rule).sources() for rule in ("refuse", "skip"))
    assert skip == {**plain, "bad_text": "skip"}


def test_it_is_told_when_prepared(tmp_path: Path, sentences: Any) -> None:
    lines = [json.dumps({"text": text}).encode() for text in sentences(300)]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join([*lines[:7], b'{"text": "caf\xe9"}', *lines[7:]]))
    tokenizer = {"kind": "trained", "vocabulary_size": 300}
    data = Files(
        paths=(str(tmp_path),), bad_text="skip", sequence_length=16, batch_size=2, tokenizer=tokenizer,
        heldout_fraction=0.2,
    )  # fmt: skip
    said: list[str] = []
    prepare(data, said.append)
    assert any(f"'{tmp_path / 'a.jsonl'}' line 8" in line for line in said), said
