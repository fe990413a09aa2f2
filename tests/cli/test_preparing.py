"""``workbench prepare``: lines, JSON, a page, and why a document was left out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from workbench.cli.command import main


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A preset on a text of its own, two of whose documents are repeated."""
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    texts = [
        f"Document {number} tells of <b>things</b> that nobody else has {'seen ' * (number % 7)}."
        for number in range(200)
    ]
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in [*texts, *texts[:2]]))
    knobs = [
        "data.steps=exact_duplicates",
        "data.tokenizer.vocabulary_size=256",
        "data.batch_size=2",
        "data.sequence_length=16",
    ]
    return ["prepare", "--preset", "fast", "--text", str(path), *(part for knob in knobs for part in ("--set", knob))]


def test_lines_and_why(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*asked, "--why", "Document 1 "]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("exact_duplicates: 202 documents in, 2 removed (1.0% of documents, ")
    assert "1 removed document with 'Document 1'" in printed
    assert re.search(r"201 +own.jsonl +exact_duplicates +repeated +of document 1\b", printed)


def test_json_and_page(asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert main([*asked, "--json", "--why", "repeated", "--html", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["documents_in"], found["documents_out"]) == (202, 200)
    assert [each["number"] for each in found["removed"]] == [200, 201]
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "202 documents came in, 200 are left" in text
    assert "&lt;b&gt;things" in text
    assert "<b>things" not in text


def test_without_steps(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*asked, "--set", "data.steps=[]"]) == 0
    assert "no preparation steps" in capsys.readouterr().out
