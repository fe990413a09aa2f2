"""Normalisation without biases."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workbench.errors import RecipeError, unknown

# Shape legend: D width; any number of leading axes.


class RMSNorm(nn.Module):
    """(..., D) -> (..., D): x / sqrt(mean(x^2) + eps) * w, in fp32 (Zhang & Sennrich 2019, arXiv 1910.07467, eq. 4).

    Args:
        width: D.
        eps: keeps a zero vector finite.
    """

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x_D: Tensor) -> Tensor:
        """Normalised x in fp32, (..., D) -> (..., D)."""
        # A bf16 number has two to three digits; a mean of D squares in bf16 would have fewer.
        x_D = x_D.float()
        return x_D * torch.rsqrt(x_D.square().mean(-1, keepdim=True) + self.eps) * self.weight


class LayerNorm(nn.Module):
    """(..., D) -> (..., D): (x - mean) / sqrt(var + eps) * w, without a bias.

    Args:
        width: D.
        eps: keeps a constant vector finite.
    """

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x_D: Tensor) -> Tensor:
        """Normalised x in fp32, (..., D) -> (..., D)."""
        return F.layer_norm(x_D.float(), self.weight.shape, self.weight, None, self.eps)


NORMS: dict[str, type[nn.Module]] = {"rms_norm": RMSNorm, "layer_norm": LayerNorm}
"""Normalisations by the value of ``architecture.norm``."""


def build_norm(kind: str, width: int) -> nn.Module:
    """A fresh normalisation of ``kind`` over the last axis, (..., width).

    Raises:
        RecipeError: no such normalisation.
    """
    if kind not in NORMS:
        raise RecipeError(unknown("architecture.norm", kind, NORMS))
    return NORMS[kind](width)
