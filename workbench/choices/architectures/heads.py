"""Heads: from hidden states of labelled rows to logits over the vocabulary, tied to the token embedding or not."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Shape legend: N labelled positions, D width, V vocabulary rows (padding included), W width of the states.


class LinearHead(nn.Module):
    """The output matrix alone: logits = x E^T with the embedding's E, or x U^T with a matrix of its own; no bias.

    Args:
        embedding: the backbone's token embedding, (V, D). When tied, it stays the backbone's: the head neither
            registers nor saves it, so a checkpoint holds the matrix once and every optimizer sees it once.
        tied: False for a matrix of the head's own, (V, D), the parameter ``matrix``.
        width: of the states, W, where it is another than the embedding's: they are projected first.
    """

    bias: nn.Parameter | None

    def __init__(self, embedding: nn.Embedding, tied: bool = True, width: int | None = None) -> None:
        super().__init__()
        # A module inside a tuple is not registered as a child; that is the point.
        self._tied = (embedding,)
        # empty_like: on the device of the model under construction, "meta" included.
        self.matrix = None if tied else nn.Parameter(torch.empty_like(embedding.weight))
        if self.matrix is not None:
            nn.init.normal_(self.matrix, std=0.02)
        self.register_parameter("bias", None)
        table = embedding.weight.shape[1]
        self.project = None if width in (None, table) else nn.Linear(width, table, bias=False)  # type: ignore[arg-type]
        if self.project is not None:
            nn.init.normal_(self.project.weight, std=0.02)

    @property
    def weight(self) -> Tensor:
        """The output matrix in use, (V, D)."""
        return self._tied[0].weight if self.matrix is None else self.matrix

    def features(self, x_ND: Tensor) -> Tensor:
        """Return what the output matrix is applied to, (N, W) -> (N, D)."""
        return x_ND if self.project is None else self.project(x_ND)  # type: ignore[no-any-return]

    def forward(self, x_ND: Tensor) -> Tensor:
        """Return logits of labelled rows, (N, W) -> (N, V), in the precision that autocast sets."""
        # (N, D) x (V, D)^T -> (N, V)
        return F.linear(self.features(x_ND), self.weight, self.bias)


class TransformHead(LinearHead):
    """BERT's head, (N, W) -> (N, V): LayerNorm(GELU(x W + b)) E^T + c (Devlin et al. 2019, released weights).

    Args:
        eps: of the LayerNorm; 1e-12 as published.
    """

    bias: nn.Parameter

    def __init__(
        self, embedding: nn.Embedding, tied: bool = True, width: int | None = None, eps: float = 1e-12
    ) -> None:
        super().__init__(embedding, tied)
        vocabulary, table = embedding.weight.shape
        self.dense = nn.Linear(width or table, table)
        self.norm = nn.LayerNorm(table, eps=eps)
        # new_zeros: on the device and in the type of the model under construction, "meta" included.
        self.bias = nn.Parameter(self.dense.weight.new_zeros(vocabulary))
        nn.init.normal_(self.dense.weight, std=0.02)
        nn.init.zeros_(self.dense.bias)

    def features(self, x_ND: Tensor) -> Tensor:
        """Return LayerNorm(GELU(x W + b)), (N, W) -> (N, D)."""
        return self.norm(F.gelu(self.dense(x_ND)))  # type: ignore[no-any-return]


HEADS: dict[str, type[LinearHead]] = {"linear": LinearHead, "transform": TransformHead}
"""Heads by the value of ``architecture.head``."""
