"""Reports of preparation steps as people read them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.base.errors import DataError
from workbench.choices.data import Files
from workbench.choices.data.preparation import Preparation, preparation_of
from workbench.choices.data.steps import ExactDuplicates

SMALL = {"tokenizer": {"kind": "trained", "vocabulary_size": 256}, "sequence_length": 16, "batch_size": 4}


def quiet(line: str) -> None:
    """Say nothing."""


@pytest.fixture
def corpus(tmp_path: Path, sentences) -> Path:
    """Forty documents, one of them with markup, the first two written twice."""
    path = tmp_path / "corpus.jsonl"
    texts = ["<b>bold</b> & markup", *sentences(40)]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in [*texts, *texts[:2]]))
    return path


def test_why_a_document_was_left_out(corpus, sentences):
    found = preparation_of(Files(paths=(str(corpus),), steps=(ExactDuplicates(),), **SMALL), quiet)
    assert (found.documents_in, found.documents_out) == (43, 41)
    assert [each["number"] for each in found.removed()] == [41, 42]
    (why,) = found.removed("bold")
    assert (why["number"], why["kind"], why["reason"], why["detail"]) == (
        41, "exact_duplicates", "repeated", "of document 0",
    )  # fmt: skip
    assert [each["text"] for each in found.removed(42)] == [sentences(1)[0][:120]]
    assert list(found.removed(40)) == []
    assert json.loads(json.dumps(found.to_dict()))["steps"][0]["reasons"] == {"repeated": 2}


def test_the_page_shows_shares_reasons_and_texts_without_their_markup(corpus):
    found = preparation_of(Files(paths=(str(corpus),), steps=(ExactDuplicates(),), **SMALL), quiet)
    assert str(found).startswith("exact_duplicates: 43 documents in, 2 removed (4.7% of documents, ")
    page = found._repr_html_()
    for shown in ("43 documents came in, 41 are left", "4.65%", "of document 0", "2 removed, to read", "10 kept"):
        assert shown in page
    assert "&lt;b&gt;bold&lt;/b&gt; &amp; markup" in page
    assert "<b>" not in page


def test_without_steps_it_says_so(corpus):
    found = preparation_of(Files(paths=(str(corpus),), **SMALL), quiet)
    assert str(found) == "no preparation steps: the text is as it was read"
    assert list(found.removed()) == found.steps == []
    assert "no preparation steps" in found._repr_html_()


def test_a_damaged_report_says_what_to_do(tmp_path):
    (tmp_path / "preparation.json").write_text('{"steps": [')
    with pytest.raises(DataError, match=r"delete .*, and it is made again"):
        Preparation(tmp_path)
