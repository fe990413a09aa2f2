"""The attention half of a block, and rotary positions."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from workbench.ops.attention import attention_named, attention_probabilities

# Shape legend: B rows, T positions, D width, H heads, E width of a head, N chosen positions of the whole batch.


class BlockContext(NamedTuple):
    """What every block of one forward pass shares, computed once per batch.

    Attributes:
        bias_B1TT: additive attention mask, shape (B, 1, T, T) (see ``ops.attention.document_bias``).
        rotation_TE: cosines and signed sines of the rotary angles, two fp32 tensors; None without rotary positions.
    """

    bias_B1TT: Tensor
    rotation_TE: tuple[Tensor, Tensor] | None


def rotary_tables(length: int, head_dim: int, base: float = 10_000.0) -> tuple[Tensor, Tensor]:
    """Cosines and signed sines for :func:`rotate` (Su et al. 2021, arXiv 2104.09864, eq. 34).

    Positions count along the row, not within a document: attention sees differences of positions only, and both
    ends of every visible pair lie in one document.

    Args:
        length: T.
        head_dim: E, even.
        base: largest wavelength is 2 pi base.

    Returns:
        cos_TE, sin_TE: fp32, shape (T, E); the first half of ``sin_TE`` is negated.
    """
    # float64 up to here: at position 65,535 an fp32 angle has steps of 0.004 radians.
    rate_E2 = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    angle_TE2 = torch.arange(length, dtype=torch.float64)[:, None] * rate_E2
    cos, sin = angle_TE2.cos().float(), angle_TE2.sin().float()
    # (T, E/2) -> (T, E). The sign lives in the table, so that rotate() swaps halves and never negates.
    return torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)


def rotate(x_BTHE: Tensor, cos_TE: Tensor, sin_TE: Tensor) -> Tensor:
    """(B, T, H, E) -> same: turn the pairs (e, e + E/2) by their position's angles, in fp32; returns x's precision."""
    first, second = x_BTHE.chunk(2, dim=-1)
    swapped_BTHE = torch.cat((second, first), dim=-1)
    # (T, E) -> (T, 1, E) for all heads. fp32: in bf16 the cosines of neighbouring positions are often equal.
    return (x_BTHE * cos_TE[:, None] + swapped_BTHE * sin_TE[:, None]).to(x_BTHE.dtype)


class SelfAttention(nn.Module):
    """Multi-head self-attention, (B, T, D) -> (B, T, D), one product for queries, keys and values.

    Args:
        width: D.
        heads: H, must divide D.
        bias: add biases to both products.
        implementation: name in ``ops.attention.ATTENTION``.
        dropout: of attention probabilities, while training.
    """

    def __init__(self, width: int, heads: int, bias: bool, implementation: str, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)
        self.attention = attention_named(implementation)
        self.dropout = dropout

    def project(self, x_BTD: Tensor, context: BlockContext) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values (B, H, T, E), positions applied."""
        # (B, T, 3D) -> (B, T, 3, H, E) -> three of (B, T, H, E), views
        q, k, v = self.qkv(x_BTD).unflatten(-1, (3, self.heads, -1)).unbind(2)
        if context.rotation_TE is not None:
            q, k = rotate(q, *context.rotation_TE), rotate(k, *context.rotation_TE)
        # (B, T, H, E) -> (B, H, T, E), still views
        return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)

    def forward(self, x_BTD: Tensor, context: BlockContext, rows_N: Tensor | None = None) -> Tensor:
        """Mix positions within documents: (B, T, D) -> (B, T, D), or (N, D) for the flat positions ``rows_N``."""
        dropout = self.dropout if self.dropout and self.training else 0.0
        # (B, H, T, E) -> (B, T, H, E) -> (B, T, D)
        mixed_BTD = self.attention(*self.project(x_BTD, context), context.bias_B1TT, dropout).transpose(1, 2).flatten(2)
        # Rows are picked before the output product, which then costs N instead of B * T positions.
        return self.out(mixed_BTD if rows_N is None else mixed_BTD.flatten(0, 1)[rows_N])

    def entropy(self, x_BTD: Tensor, context: BlockContext) -> Tensor:
        """Mean entropy in nats of the attention rows (B, H, T, T), 0-d."""
        q, k, _ = self.project(x_BTD, context)
        return torch.special.entr(attention_probabilities(q, k, context.bias_B1TT)).sum(-1).mean()
