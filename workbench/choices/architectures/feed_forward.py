"""The feed-forward half of a block."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from workbench.base.errors import RecipeError, check_known
from workbench.ops.recompute import recomputed

# Shape legend: D width, F inner width; any number of leading axes.


def relu2(h_F: Tensor) -> Tensor:
    """Return max(h, 0)^2 (So et al. 2021, arXiv 2109.08668)."""
    return F.relu(h_F).square()


ACTIVATIONS: dict[str, tuple[Callable[[Tensor], Tensor], bool]] = {
    # The exact (erf) form, as in BERT. Blocks with it took 1.14 times as long as with relu2 (pre_ln.md).
    "gelu": (F.gelu, False),
    "relu2": (relu2, False),
    "relu": (F.relu, False),
    "silu": (F.silu, False),
    "geglu": (F.gelu, True),
    "swiglu": (F.silu, True),
}
"""Activation, and whether it gates a second projection, by the value of ``architecture.ffn``."""


def gated_width(inner_width: int) -> int:
    """Return inner width F of a gated part, (D, 2F) and (F, D), with as many parameters as an ungated ``inner_width``.

    Two thirds, rounded to a multiple of 32 (8 below 512): matrix units work in such tiles.
    """
    step = 32 if inner_width >= 512 else 8
    return max(step, round(inner_width * 2 / 3 / step) * step)


class FeedForward(nn.Module):
    """(..., D) -> (..., D): y = act(x W1) W2, or act(x Wa) * (x Wb) W2 when gated (Shazeer 2020, arXiv 2002.05202).

    Args:
        width: D.
        inner_width: F of the ungated part; a gated one takes :func:`gated_width` of it.
        activation: a key of :data:`ACTIVATIONS`.
        bias: add biases to both products.

    Attributes:
        recomputes: the backward pass finds the first product alone, and computes the activation again.
    """

    recomputes: bool = False

    def __init__(self, width: int, inner_width: int, activation: str, bias: bool) -> None:
        super().__init__()
        check_known("architecture.ffn", activation, ACTIVATIONS, RecipeError)
        self.activation, self.gated = ACTIVATIONS[activation]
        inner = gated_width(inner_width) if self.gated else inner_width
        # Gate and value in one product (D, 2F): one wide matmul runs nearer to peak than two narrow ones.
        self.up = nn.Linear(width, 2 * inner if self.gated else inner, bias=bias)
        self.down = nn.Linear(inner, width, bias=bias)

    def forward(self, x_D: Tensor) -> Tensor:
        """Map (..., D) -> (..., D)."""
        h_F = self.up(x_D)
        return recomputed(self.contract, h_F) if self.recomputes else self.contract(h_F)  # type: ignore[no-any-return]

    def contract(self, h_F: Tensor) -> Tensor:
        """Return the first product, (..., F) or gate and value (..., 2F), -> activation -> (..., D)."""
        if self.gated:
            # (..., 2F) -> two of (..., F), views.
            gate_F, value_F = h_F.chunk(2, dim=-1)
            return self.down(self.activation(gate_F) * value_F)
        return self.down(self.activation(h_F))
