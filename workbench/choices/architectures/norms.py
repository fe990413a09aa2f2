"""Normalisations, in at least fp32 whatever the precision around them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

# Shape legend: D width; any number of leading axes.


def at_least_fp32(x_D: Tensor) -> Tensor:
    """Map (..., D) -> same in fp32, or in float64 if it is that: a mean of D numbers in bf16 would have two digits."""
    return x_D.to(torch.promote_types(x_D.dtype, torch.float32))


class RMSNorm(nn.Module):
    """(..., D) -> (..., D): x / sqrt(mean(x^2) + eps) * w, in fp32 (Zhang & Sennrich 2019, arXiv 1910.07467, eq. 4).

    Args:
        width: D.
    """

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x_D: Tensor) -> Tensor:
        """Return normalised x in fp32, (..., D) -> (..., D)."""
        x_D = at_least_fp32(x_D)
        return x_D * torch.rsqrt(x_D.square().mean(-1, keepdim=True) + self.eps) * self.weight


class LayerNorm(nn.LayerNorm):
    """(..., D) -> (..., D): (x - mean) / sqrt(var + eps) * w + b, in fp32 (Ba et al. 2016, arXiv 1607.06450).

    Args:
        width: D.
    """

    def __init__(self, width: int, eps: float = 1e-5, bias: bool = False) -> None:
        super().__init__(width, eps=eps, bias=bias)

    def forward(self, x_D: Tensor) -> Tensor:
        """Return normalised x in fp32, (..., D) -> (..., D)."""
        return super().forward(at_least_fp32(x_D))
