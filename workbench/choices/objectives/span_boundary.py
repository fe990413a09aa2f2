"""SpanBERT's second part: tokens of a hidden span from the two tokens around it and their place in the span."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workbench.choices.data.tokens import Batch
from workbench.choices.objectives.corruption import Picks
from workbench.choices.objectives.groups import next_place

# Shape legend: B rows, T positions of a row, K labelled positions of a row, N = B * K, D width, P places in a span.

PLACES = 32
"""P; tokens further from the left end of a span share the last place."""


class Edges(NamedTuple):
    """The tokens around the span of each slot, (N,) each.

    Attributes:
        left_N, right_N: places of the tokens before and behind it, in the flattened rows (B * T).
        place_N: of the slot in its span, 1 for its first token.
        counts_N: whether both stand in the slot's own document, and the slot counts itself.
    """

    left_N: Tensor
    right_N: Tensor
    place_N: Tensor
    counts_N: Tensor


def edges_of(batch: Batch, picks: Picks) -> Edges:
    """Return the edges of the picked spans of rows (B, T); a span ends where its labels do."""
    column_BK, counts_BK, groups = picks
    assert groups is not None
    documents_BT = batch.documents_BT
    rows, length = documents_BT.shape
    labelled_BT = torch.zeros_like(documents_BT, dtype=torch.bool).scatter(1, column_BK, counts_BK)
    left_BK = groups.first_BT.gather(1, column_BK) - 1
    right_BK = torch.minimum(groups.end_BT, next_place(~labelled_BT)).gather(1, column_BK)
    inside_BK = (left_BK >= 0) & (right_BK < length)
    left_BK, right_BK = left_BK.clamp(min=0), right_BK.clamp(max=length - 1)
    document_BK = documents_BT.gather(1, column_BK)
    same_BK = (documents_BT.gather(1, left_BK) == document_BK) & (documents_BT.gather(1, right_BK) == document_BK)
    row_B1 = torch.arange(rows, device=column_BK.device)[:, None] * length
    return Edges(
        (row_B1 + left_BK).flatten(),
        (row_B1 + right_BK).flatten(),
        (column_BK - left_BK).clamp(min=1).flatten(),
        (counts_BK & inside_BK & same_BK).flatten(),
    )


class SpanBoundary(nn.Module):
    """States of slots, (N, D), from those of the edges of their spans, for the head over the vocabulary.

    h = LN(GELU(W1 [x_{s-1}; x_{e+1}; p_{i-s+1}])),  y = LN(GELU(W2 h))

    Source: Joshi et al. 2020 (arXiv 1907.10529), section 3.2.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.places = nn.Embedding(PLACES, width)
        self.inner, self.outer = nn.Linear(3 * width, width), nn.Linear(width, width)
        self.inner_norm, self.outer_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        for weight in (self.places.weight, self.inner.weight, self.outer.weight):
            nn.init.normal_(weight, std=0.02)
        nn.init.zeros_(self.inner.bias)
        nn.init.zeros_(self.outer.bias)

    def forward(self, left_ND: Tensor, right_ND: Tensor, place_N: Tensor) -> Tensor:
        """Return states (N, D) for the head; places are counted from 1."""
        place_ND = self.places((place_N - 1).clamp(max=PLACES - 1)).to(left_ND.dtype)
        h_ND = self.inner_norm(F.gelu(self.inner(torch.cat([left_ND, right_ND, place_ND], dim=-1))))
        y_ND: Tensor = self.outer_norm(F.gelu(self.outer(h_ND)))
        return y_ND
