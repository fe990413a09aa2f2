"""Rows as other trainers lay them out: every document padded to a row of its own, a head on every position.

The same loss at a higher price: what leaving out padding and unlabelled positions saves can be switched off and seen.
"""

from __future__ import annotations

import torch
from torch import Tensor

from workbench.choices.data.tokens import Batch
from workbench.choices.objectives.objective import Labelled

# Shape legend: B packed rows, P pieces of documents in them, T positions of a row, N labelled slots.


def everywhere(seen: Labelled) -> Labelled:
    """Return the same labels over every position of the rows: N becomes B * T, and what was not labelled weighs 0."""
    index_N = seen.index_N
    if index_N is None:
        return seen

    def spread(values_N: Tensor) -> Tensor:
        return values_N.new_zeros(seen.tokens_BT.numel()).scatter(0, index_N, values_N)

    return Labelled(seen.tokens_BT, None, spread(seen.labels_N), spread(seen.weight_N), seen.causal)


def padded(seen: Labelled, batch: Batch, pad: int) -> tuple[Labelled, Batch]:
    """Return packed rows (B, T) -> one row of T positions for every piece of a document, filled up with ``pad``:
    (P, T).

    Labels stay in their order. How many pieces there are is read from the device, which a GPU waits for.
    """
    length = seen.tokens_BT.shape[1]
    # A piece begins where the row does, and where its number within the row changes.
    begins_BT = torch.ones_like(batch.documents_BT, dtype=torch.bool)
    begins_BT[:, 1:] = batch.documents_BT[:, 1:] != batch.documents_BT[:, :-1]
    piece_M = begins_BT.flatten().cumsum(0) - 1
    pieces = int(piece_M[-1]) + 1
    place_M = piece_M * length + batch.positions_BT.flatten()

    def laid_out(values_M: Tensor, filler: int) -> Tensor:
        return values_M.new_full((pieces * length,), filler).scatter(0, place_M, values_M).view(pieces, length)

    index_N = place_M if seen.index_N is None else place_M[seen.index_N]
    position_PT = torch.arange(length, device=place_M.device).expand(pieces, length)
    # Padding is a document of its own: no word sees it, and it sees itself, so that no softmax is empty.
    document_PT = laid_out(torch.zeros_like(batch.documents_BT).flatten(), 1)
    sample_P = batch.samples_B.new_zeros(pieces)
    causal = seen.causal[begins_BT.nonzero()[:, 0]] if isinstance(seen.causal, Tensor) else seen.causal
    tokens_PT = laid_out(seen.tokens_BT.flatten(), pad)
    return (
        Labelled(tokens_PT, index_N, seen.labels_N, seen.weight_N, causal),
        Batch(tokens_PT, position_PT, document_PT, sample_P),
    )
