"""Documents for steps, and what a step says of them."""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path

import pytest

from workbench.choices.data.steps.step import Document, Step, Verdict

LICENCES = "spdx_licence_texts.jsonl.xz"


def documents_of(texts: list[str], first: int = 0) -> list[Document]:
    """Texts as documents, numbered from ``first``."""
    return [Document(number, (), text) for number, text in enumerate(texts, first)]


def judged(step: Step, texts: list[str]) -> list[Verdict]:
    """A step's verdicts, one for each text, in their order."""
    verdicts = list(step.judge(documents_of(texts)))
    assert [verdict.document.text for verdict in verdicts] == texts
    return verdicts


def evaluation_file(pattern: str) -> Path:
    """A file below ``$WORKBENCH_EVAL``; the test is skipped without it."""
    folder = os.environ.get("WORKBENCH_EVAL")
    found = sorted(Path(folder).rglob(pattern)) if folder else []
    if not found:
        pytest.skip(f"no {pattern} in a folder that WORKBENCH_EVAL names")
    return found[0]


def licence_texts() -> list[str]:
    """819 licence texts with natural copies and near copies."""
    with lzma.open(evaluation_file(LICENCES), "rt", encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file]
