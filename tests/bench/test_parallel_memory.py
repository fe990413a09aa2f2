"""Memory of two processes beside its formula: a toy of the benchmark, with real processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from workbench.bench.parallel_memory import ARMS, computed, held, main


def test_a_storage_counts_once() -> None:
    whole = torch.zeros(8)
    assert held([whole, whole[2:4], None, torch.zeros(1)]) == 36


def test_formulas_of_two_equal_tensors() -> None:
    sizes = {"blocks.0.attention.out.weight": 10, "head.weight": 10}
    found = {arm: computed(arm, sizes, 2, 2) for arm in ARMS}
    assert found == {"data": 320, "zero 1": 240, "zero 2": 200, "zero 3": 160, "tensor": 240}


@pytest.mark.process
@pytest.mark.extended
def test_every_way_holds_what_its_card_says(corpus: Path, tmp_path: Path) -> None:
    data = {"kind": "files", "paths": [str(corpus)], "tokenizer": {"vocabulary_size": 256}}
    small = ["--set", f"data={json.dumps(data | {'sequence_length': 32, 'batch_size': 8})}"]
    assert main([*small, "--steps", "2", "--out", str(tmp_path)]) == 0
    (path,) = tmp_path.glob("parallel-memory-*.json")
    for arm, found in json.loads(path.read_text())["arms"].items():
        assert found["error"] == pytest.approx(0, abs=0.1), arm
