"""Ourselves as a contender: the real loop on a tiny model, in this process."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
import torch

from workbench.bench import peer_workbench


def test_rounds_of_the_real_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    words = [f"word{number}" for number in range(17)]
    lines = [" ".join(words[(i * j) % len(words)] for j in range(1, 60)) for i in range(1, 60)]
    (tmp_path / "text.txt").write_text("\n\n".join(lines), encoding="utf-8")
    data = {
        "kind": "files", "paths": [str(tmp_path / "text.txt")], "sequence_length": 16, "batch_size": 4,
        "document_characters": 100, "heldout_fraction": 0.2,
        "tokenizer": {"kind": "trained", "vocabulary_size": 256},
    }  # fmt: skip
    recipe = {
        "data": data, "architecture": {"kind": "pre_ln", "layers": 1, "width": 16, "heads": 2},
        "execution": {"kind": "native", "precision": "fp32", "compile": False, "attention": "plain", "device": "cpu"},
    }  # fmt: skip
    out = io.StringIO()
    monkeypatch.setattr(sys, "argv", ["peer_workbench", json.dumps({"recipe": recipe, "warmup": 2})])
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"steps": 3}\n{"steps": 2}\n'))
    monkeypatch.setattr(sys, "stdout", out)
    peer_workbench.main()
    ready, *rounds = [json.loads(line) for line in out.getvalue().splitlines()]
    assert ready["ready"]["attention"] == "plain"
    assert ready["ready"]["threads"] == torch.get_num_threads()
    assert ready["ready"]["parameters"] > 256 * 16
    assert [answer["tokens"] for answer in rounds] == [3 * 64, 2 * 64]
    assert all(answer["seconds"] > 0 for answer in rounds)
