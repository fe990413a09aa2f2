"""Labelled examples out of files of every form."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from workbench.base.errors import DataError
from workbench.choices.tasks.files import Answer, read_examples, split_in_name


def test_forms_of_files_give_the_same_examples(tmp_path: Path) -> None:
    rows = [('good, "really"', "1"), ("bad", "0")]
    lines = "".join(json.dumps({"text": text, "label": int(label)}) + "\n" for text, label in rows)
    (tmp_path / "a.csv").write_text('text,label\n"good, ""really""",1\nbad,0\n')
    (tmp_path / "a.tsv").write_text('text\tlabel\ngood, "really"\t1\nbad\t0\n')
    (tmp_path / "a.jsonl").write_text(lines)
    (tmp_path / "a.jsonl.xz").write_bytes(lzma.compress(lines.encode()))
    (tmp_path / "a.json").write_text(json.dumps([{"text": text, "label": label} for text, label in rows]))
    for path in sorted(tmp_path.iterdir()):
        found = [(each.texts[0], each.label) for each in read_examples(path, "classes", ("text",), "label")]
        assert found == rows, path


def test_glue_files_are_read_as_they_are(tmp_path: Path) -> None:
    """CoLA has no line of names; test files have no labels; MNLI's mismatched part is another task."""
    (tmp_path / "train.tsv").write_text("gj04\t1\t\tThe sailors rode the breeze.\nc_13\t0\t*\tThe more books.\n")
    (tmp_path / "test.tsv").write_text("index\tsentence\n0\tBill whistled.\n")
    cola = [each for name in ("train", "test")
            for each in read_examples(tmp_path / f"{name}.tsv", "classes", ("sentence",), "label")]  # fmt: skip
    assert [(each.split, each.label) for each in cola] == [("train", "1"), ("train", "0")]
    assert split_in_name(Path("dev_mismatched.tsv")) is None
    assert split_in_name(Path("dev_matched.tsv")) == "dev" == split_in_name(Path("squad-dev-v1.1.json.xz"))


def test_questions_bring_all_their_answers_and_their_article(tmp_path: Path) -> None:
    asked = {"id": "1", "question": " Who? ", "answers": [{"text": "Ann", "answer_start": 0}]}
    none = {"id": "2", "question": "Why?", "answers": [], "is_impossible": True}
    found = {"data": [{"title": "T", "paragraphs": [{"context": "Ann sat.", "qas": [asked, none]}]}]}
    path = tmp_path / "train-v2.0.json"
    path.write_text(json.dumps(found))
    (example,) = read_examples(path, "answers", (), "")
    assert example == ("1", "train", ("Who?", "Ann sat."), (Answer("Ann", 0),), "T")
    path.write_text('{"rows": []}')
    with pytest.raises(DataError, match=r"'data' is missing; it has: rows"):
        list(read_examples(path, "answers", (), ""))


@pytest.mark.parametrize(
    ("text", "form", "message"),
    [
        ("review,stars\na,1\n", "classes", "no column 'text' and no column 'label'; it has: review, stars"),
        ("text,label\na,x\n", "numbers", "column 'label' holds 'x', and numbers are asked for"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_error(tmp_path: Path, text: str, form: str, message: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        list(read_examples(path, form, ("text",), "label"))  # type: ignore[arg-type]
