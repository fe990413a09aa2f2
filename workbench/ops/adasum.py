"""AdaSum: add updates where they are orthogonal, average them where they agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import torch
from torch import Tensor


@overload
def adasum(a: Tensor, b: Tensor) -> Tensor: ...
@overload
def adasum(a: Sequence[Tensor], b: Sequence[Tensor]) -> list[Tensor]: ...
def adasum(a: Tensor | Sequence[Tensor], b: Tensor | Sequence[Tensor]) -> Tensor | list[Tensor]:
    """Combine two updates of the same parameters; lists are combined tensor by tensor.

    (1 - a.b / (2 |a|^2)) a + (1 - a.b / (2 |b|^2)) b: the sum of orthogonal updates, the average of equal ones. Dot
    products are computed in float64. It is meant for what an optimizer adds to the parameters, not for gradients.

    Args:
        a, b: tensors of one shape and dtype, or equally long lists of them. An update that is zero adds nothing.

    Returns:
        The combined update in the shape and dtype of ``a``; a list where lists are given.

    Raises:
        ValueError: shapes, dtypes or lengths differ; names both.

    Source: Maleki et al. 2021, "Scaling distributed training with adaptive summation" (MLSys, arXiv 2006.02924).

    Example:
        >>> adasum(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 2.0]))
        tensor([1., 2.])
        >>> adasum(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]))
        tensor([1., 2.])
    """
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        if len(a) != len(b):
            raise ValueError(f"adasum combines equally long lists of tensors, not {len(a)} and {len(b)}")
        return [_of_one(x, y) for x, y in zip(a, b, strict=True)]
    return _of_one(a, b)


def adasum_all(updates: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """Combine the updates of several workers in a binary tree: neighbours first, then pairs of neighbours.

    Args:
        updates: one list of tensors for each worker; the number of workers is a power of two.

    Raises:
        ValueError: the number of workers is no power of two, or two workers differ in shapes.
    """
    check_tree(len(updates))
    level = [list(each) for each in updates]
    while len(level) > 1:
        level = [adasum(left, right) for left, right in zip(level[::2], level[1::2], strict=True)]
    return level[0]


def check_tree(workers: int) -> None:
    """Refuse a number of workers that is no power of two.

    Raises:
        ValueError: names the number and the nearest that are legal.
    """
    if workers < 1 or workers & (workers - 1):
        below = 1 << (max(workers, 1).bit_length() - 1)
        raise ValueError(f"AdaSum combines 1, 2, 4, 8, ... workers, not {workers}; use {below} or {2 * below}")


def _of_one(a: Tensor, b: Tensor) -> Tensor:
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError(
            "adasum combines tensors of one shape and dtype, "
            f"not {tuple(a.shape)} {a.dtype} and {tuple(b.shape)} {b.dtype}"
        )
    flat_a, flat_b = a.flatten().double(), b.flatten().double()
    dot, square_a, square_b = flat_a @ flat_b, flat_a @ flat_a, flat_b @ flat_b
    # Of a zero update the dot is zero as well: its factor is one, and it adds nothing.
    tiny = torch.finfo(torch.float64).tiny
    share_a, share_b = 1 - dot / (2 * square_a).clamp_min(tiny), 1 - dot / (2 * square_b).clamp_min(tiny)
    return (share_a * flat_a + share_b * flat_b).to(a.dtype).view_as(a)
