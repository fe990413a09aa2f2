"""Local files: every format really written and read, and every error text."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import re
import sys
from pathlib import Path

import pyarrow
import pytest
import zstandard
from pyarrow import parquet

from workbench.base.errors import DataError
from workbench.choices.data.files import Files, find_files
from workbench.choices.data.prepare import prepare

TEXTS = ["Größe and naïveté.", "two\nlines", "three 🙂"]


def lines(texts: list[str], field: str = "text") -> bytes:
    return b"".join(json.dumps({"id": i, field: t}, ensure_ascii=False).encode() + b"\n" for i, t in enumerate(texts))


WRITERS = {
    "a.jsonl": lambda path: path.write_bytes(lines(TEXTS)),
    "a.ndjson": lambda path: path.write_bytes(lines(TEXTS).rstrip()),
    "a.json": lambda path: path.write_bytes(b"\xef\xbb\xbf" + lines(TEXTS)),
    "a.jsonl.gz": lambda path: path.write_bytes(gzip.compress(lines(TEXTS))),
    "a.JSONL.XZ": lambda path: path.write_bytes(lzma.compress(lines(TEXTS))),
    "a.jsonl.zst": lambda path: path.write_bytes(zstandard.compress(lines(TEXTS))),
    "two-frames.jsonl.zst": lambda path: path.write_bytes(
        zstandard.compress(lines(TEXTS[:1])) + zstandard.compress(lines(TEXTS[1:]))
    ),
    "a.parquet": lambda path: parquet.write_table(pyarrow.table({"id": [0, 1, 2], "text": TEXTS}), path),
}


def read(*paths: object, **knobs) -> list[str]:
    return list(Files(paths=tuple(str(path) for path in paths), **knobs).documents())


@pytest.mark.parametrize("name", WRITERS)
def test_every_format(tmp_path, name):
    WRITERS[name](tmp_path / name)
    assert read(tmp_path / name) == TEXTS


@pytest.mark.parametrize("ending", ["txt", "md", "txt.gz", "txt.xz", "txt.zst"])
def test_text_files(tmp_path, ending):
    pack = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstandard.compress}.get(ending[4:], bytes)
    (tmp_path / f"a.{ending}").write_bytes(pack("One.\r\n\r\nTwo é.\n".encode()))
    assert read(tmp_path) == ["One.\n\nTwo é."]


def test_folders_go_down_and_leave_notes_out(tmp_path):
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "b" / "c" / "2.jsonl").write_bytes(lines(["two"]))
    (tmp_path / "1.jsonl.gz").write_bytes(gzip.compress(lines(["one"])))
    (tmp_path / "valid.jsonl").write_bytes(lines(["a name is no reason to hold out"]))
    (tmp_path / "MANIFEST.md").write_text("about the files")
    (tmp_path / "dataset_info.json").write_text('{\n "a": 1\n}')
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    (tmp_path / ".hidden.jsonl").write_text("{")
    assert read(tmp_path) == ["one", "two", "a name is no reason to hold out"]


def test_globs_and_repetitions(tmp_path):
    for name in ("x1", "x2", "y1"):
        (tmp_path / f"{name}.jsonl").write_bytes(lines([name]))
    assert read(tmp_path / "x*.jsonl", tmp_path / "x1.jsonl") == ["x1", "x2"]
    assert read(tmp_path / "**" / "*1.jsonl") == ["x1", "y1"]


def test_heldout_paths(tmp_path):
    (tmp_path / "train.jsonl").write_bytes(lines(["t"]))
    (tmp_path / "valid.jsonl").write_bytes(lines(["v"]))
    data = Files(paths=(str(tmp_path),), heldout_paths=(str(tmp_path / "valid.jsonl"),))
    assert list(data.documents()) == ["t"]
    assert list(data.heldout_documents() or ()) == ["v"]
    everything = Files(paths=(str(tmp_path / "valid.jsonl"),), heldout_paths=(str(tmp_path),))
    with pytest.raises(DataError, match=r"nothing is left to train on"):
        list(everything.documents())


def test_sources_follow_the_files(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(["a"]))
    before = Files(paths=(str(path),)).sources()
    assert before == Files(paths=(str(path),)).sources()
    path.write_bytes(lines(["b"]))
    assert before != Files(paths=(str(path),)).sources()
    json.dumps(before)


ERRORS = {
    "latin1.txt": ("fine\nna\xefve".encode("latin1"), r"latin1\.txt' is not UTF-8: byte 0xef at offset 7 .*iconv"),
    "field.jsonl": (lines(["a"], "content"), r"field\.jsonl' line 1: data\.field: unknown value 'text'.*content"),
    "broken.jsonl": (lines(["a"]) + b"{\n", r"broken\.jsonl' line 2 is not JSON.*jq"),
    "array.json": (b'[{"text": "a"}]', r"array\.json' line 1 holds a list, expected an object"),
    "number.jsonl": (b'{"text": 5}\n', r"line 1: field 'text' is of type number, expected text"),
    "cut.jsonl.gz": (gzip.compress(lines(TEXTS * 50))[:-20], r"damaged archive"),
    "sum.jsonl.gz": (gzip.compress(lines(TEXTS))[:-8] + b"\0" * 8, r"damaged archive.*CRC"),
    "not.jsonl.gz": (b"plain text", r"damaged archive.*gzip"),
    "cut.jsonl.xz": (lzma.compress(lines(TEXTS * 50))[:-30], r"damaged archive"),
    "not.jsonl.xz": (b"plain text", r"damaged archive"),
    "cut.jsonl.zst": (zstandard.compress(lines(TEXTS * 50))[:-9], r"damaged archive.*ends in the middle"),
    "not.jsonl.zst": (b"plain text", r"damaged archive"),
    "not.parquet": (b"plain text", r"no readable parquet file"),
    "other.bz2": (bz2.compress(b"x"), r"other\.bz2' cannot be read; legal file names end in \.txt"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(tmp_path, name):
    content, message = ERRORS[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read(tmp_path / name)


def test_paths_that_lead_nowhere(tmp_path):
    (tmp_path / "train.jsonl").write_bytes(lines(["a"]))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no such file or folder '.*trian\.jsonl'; did you mean '.*train\.jsonl'\?"):
        read(tmp_path / "trian.jsonl")
    # A folder is none for a file, nor a name that merely shares letters.
    (tmp_path / "opt").mkdir()
    for nothing_near in ("opt.txt", "nope.txt", "nope"):
        with pytest.raises(DataError, match=rf"no such file or folder '.*{nothing_near}'$"):
            read(tmp_path / nothing_near)
    with pytest.raises(DataError, match=r"did you mean '.*empty'\?"):
        read(tmp_path / "emty" / "a.txt")
    with pytest.raises(DataError, match=r"'.*empty' matches no readable file"):
        read(tmp_path / "empty")
    with pytest.raises(DataError, match=r"'.*\*\.parquet' matches no readable file"):
        read(tmp_path / "*.parquet")
    with pytest.raises(DataError, match=r"is an address, and files are read from this machine: download it, or"):
        read("https://example.org/train.jsonl.zst")
    with pytest.raises(DataError, match=r"data\.heldout_paths: no such file"):
        read(tmp_path / "train.jsonl", heldout_paths=(str(tmp_path / "no"),))


def test_a_form_is_told_the_same_at_once(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.jsonl").write_bytes(lines(["a"]))
    (tmp_path / "empty").mkdir()
    (tmp_path / "page.html").write_text("")
    for here in ("full", "full/a.jsonl", "full/*.jsonl", "**"):
        assert not list(Files(paths=[str(tmp_path / here)]).problems_here())
    for wrong in ("empty", "page.html", "ful", "*.parquet", "fu*"):
        text = str(tmp_path / wrong)
        with pytest.raises(DataError) as told:
            find_files((text,), "data.paths")
        (problem,) = Files(paths=[text]).problems_here()
        assert f"{problem.path}: {problem.message}" == str(told.value)
    (tmp_path / "nothing.txt").write_text("")
    (problem,) = Files(paths=[str(tmp_path / "nothing.txt")]).problems_here()
    assert problem.message == f"every file of it is empty: {tmp_path / 'nothing.txt'}"
    assert not list(Files(paths=[str(tmp_path / "nothing.txt"), str(tmp_path / "full")]).problems_here())
    (unheard_of,) = Files(paths=["a" * 5000]).problems_here()
    assert unheard_of.path == "data.paths"


def test_what_a_folder_holds_beside_records_is_said_to_be_left_out(tmp_path):
    for name in ("a.txt", "b.md"):
        (tmp_path / name).write_text("words " * 2000)
    (tmp_path / "f.jsonl").write_bytes(lines(["more words"] * 40))
    (notice,) = Files(paths=[str(tmp_path)]).notices()
    assert notice.path == "data.paths"
    assert notice.message == (
        f"of '{tmp_path}' 1 file of records will be read, not 2 others (a.txt, b.md): name those outright to read "
        "them, too"
    )
    assert not list(Files(paths=[str(tmp_path / name) for name in ("a.txt", "b.md", "f.jsonl")]).notices())
    assert not list(Files(paths=[str(tmp_path / "gone")]).notices())
    said = []
    with pytest.raises(DataError):
        prepare(Files(paths=[str(tmp_path)]), say=said.append)
    assert notice.message in said


@pytest.mark.parametrize(("name", "package"), [("a.parquet", "pyarrow"), ("a.jsonl.zst", "zstandard")])
def test_missing_package_names_the_extra(tmp_path, monkeypatch, name, package):
    WRITERS[name](tmp_path / name)
    monkeypatch.setitem(sys.modules, package, None)  # what `import` finds when it is not installed
    with pytest.raises(DataError, match=rf"needs the package {package}; .*pip install 'workbench\[files\]'"):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ("encoding", "name"), [("utf-16", "utf-16"), ("utf-16-le", "utf-16le"), ("utf-32", "utf-32"), ("cp1252", "cp1252")]
)
def test_text_of_another_encoding_is_told_its_name(tmp_path: Path, encoding: str, name: str) -> None:
    text = "some text, and caf\xe9\n" + "\u201cquoted\u201d\n" * (encoding == "cp1252")
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    with pytest.raises(DataError, match=f"iconv -f {name} -t utf-8"):
        list(Files(paths=(str(tmp_path / "a.txt"),)).documents())
    at_once = [problem.message for problem in Files(paths=(str(tmp_path),)).problems_here()]
    assert [f"iconv -f {name} -t utf-8" in message for message in at_once] == [True] * name.startswith("utf")


@pytest.mark.parametrize("mark", ["dataset_info.json", "dataset_dict.json"])
def test_a_folder_that_datasets_saved_names_the_choice_that_reads_it(tmp_path: Path, mark: str) -> None:
    (tmp_path / mark).write_text("{}")
    (tmp_path / "data-00000-of-00001.arrow").write_bytes(b"x")
    with pytest.raises(DataError, match=r'"kind": "hugging_face"'):
        list(Files(paths=(str(tmp_path),)).documents())


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("mark", [b"", b"\xff\xfe"])
@pytest.mark.parametrize("binary", [random.Random(0).randbytes(5000), bytes(5000)], ids=["random", "zeros"])
def test_what_is_no_text_is_not_to_be_converted(tmp_path: Path, name: str, binary: bytes, mark: bytes) -> None:
    path, binary = tmp_path / name, mark + binary
    path.write_bytes(gzip.compress(binary) if path.suffix == ".gz" else binary)
    said = [problem.message for problem in Files(paths=(str(path),)).problems_here()]
    assert len(said) == (path.suffix == ".txt"), "what is compressed is looked into when it is read"
    with pytest.raises(DataError) as refused:
        list(Files(paths=(str(path),)).documents())
    for message in (*said, str(refused.value)):
        assert "does not look like text" in message
        assert "iconv" not in message


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "parquet"])
def test_a_field_that_is_not_there_is_told_before_a_launch(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    if ending == "parquet":
        parquet.write_table(pyarrow.table({"id": [0], "body": ["text"], "meta": [{"text": "inner"}]}), path)
    else:
        record = json.dumps({"id": 0, "body": "text", "meta": {"text": "inner"}}).encode()
        path.write_bytes(gzip.compress(record) if ending.endswith("gz") else record)
    for field, why in (
        ("text", "unknown value 'text'.* legal: body, id, meta. Set data.field to the one that holds the text"),
        ("meta", "field 'meta' is of type object, expected text; .*jq -c '{text: .meta.text}'"),
        ("meta.text", "unknown value 'meta.text'.*jq -c '{text: .meta.text}'"),
    ):
        (problem,) = Files(paths=(str(tmp_path),), field=field).problems_here()
        assert problem.path == "data.field"
        assert re.search(why, problem.message)
    assert not [*Files(paths=(str(tmp_path),), field="body").problems_here()]


@pytest.mark.parametrize(("ending", "comma"), [("csv", ","), ("tsv", "\t")])
def test_a_table_is_read_and_its_columns_are_listed(tmp_path: Path, ending: str, comma: str) -> None:
    path = tmp_path / f"a.{ending}"
    path.write_text(f"id{comma}body\n1{comma}some text\n")
    (problem,) = Files(paths=(str(path),)).problems_here()
    assert problem.path == "data.field"
    assert "id" in problem.message
    assert "body" in problem.message
    assert read(path, field="body") == ["some text"]
    # Beside records a table is a note about them, unless it is named.
    (tmp_path / "b.jsonl").write_text('{"body": "record"}\n')
    assert read(tmp_path, field="body") == ["record"]
    assert list(Files(paths=(str(tmp_path), str(path)), field="body").documents()) == ["some text", "record"]
