"""Memory of two processes: its formulas, and what counts."""

from __future__ import annotations

import torch

from workbench.bench.parallel_memory import ARMS, computed, held


def test_a_storage_counts_once() -> None:
    whole = torch.zeros(8)
    assert held([whole, whole[2:4], None, torch.zeros(1)]) == 36


def test_formulas_of_two_equal_tensors() -> None:
    sizes = {"blocks.0.attention.out.weight": 10, "head.weight": 10}
    found = {arm: computed(arm, sizes, 2, 2) for arm in ARMS}
    assert found == {"data": 320, "zero 1": 240, "zero 2": 200, "zero 3": 160, "tensor": 240}
