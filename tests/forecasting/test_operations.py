"""Keys, kinds and sizes of operations."""

from __future__ import annotations

import torch

from workbench.forecasting.operations import Operation, described

PRODUCT = Operation("mm", "mm 32 nn", "product", 1, 8, 4, 2, 100)
ADD = Operation("add", "add 32>32", "other", 0, 0, 0, 0, 64)


def test_a_product_is_known_by_its_sides_and_order() -> None:
    a, b = torch.zeros(8, 4), torch.zeros(2, 4)
    assert described("mm", [a, b.t()], [torch.zeros(8, 2)]) == ("mm 32 nt", "product", (1, 8, 4, 2))
    bias = torch.zeros(2)
    assert described("addmm", [bias, a, b.t()], [torch.zeros(8, 2)])[0] == "mm 32 nt"
    many = torch.zeros(3, 8, 4, dtype=torch.bfloat16)
    found = described("bmm", [many.transpose(1, 2), many], [torch.zeros(3, 4, 4, dtype=torch.bfloat16)])
    assert found == ("bmm 16 tn", "attention", (3, 4, 8, 4))


def test_everything_else_by_its_types_and_whether_it_lies_in_order() -> None:
    x = torch.zeros(4, 6)
    assert described("_to_copy", [x], [x.bfloat16()]) == ("_to_copy 32>16", "other", (0, 0, 0, 0))
    assert described("exp", [x.t()], [x.t()])[:2] == ("exp 32>32 strided", "other")
    assert described("arange", [], [torch.arange(3)])[0] == "arange 0>64"


def test_sizes_are_what_time_is_a_sum_over() -> None:
    assert PRODUCT.sizes == (1.0, 128.0, 32.0, 8.0, 16.0)
    assert PRODUCT.flops == 128
    assert ADD.sizes == (1.0, 64.0)
