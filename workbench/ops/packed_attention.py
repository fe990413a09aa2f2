"""Attention that skips what packed documents do not see, instead of adding -inf there: FlexAttention, varlen.

Both need a GPU: FlexAttention has no backward pass on a CPU and is fast compiled only, the kernel of
``torch.nn.attention.varlen`` is CUDA's and takes 16-bit numbers. Neither adds anything to logits, so positions that are
told there and windows are not theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

# Shape legend: B rows, H heads, T positions, E width of a head, P pieces of documents, M = B * T.


class PackedAttention(NamedTuple):
    """An implementation.

    Attributes:
        layout: what attention needs to know of a batch, from documents (B, T) and whether it is causal; once a batch.
        by_row: whether some rows of a batch may be causal and others not, as a bool (B,) says.
        attend: queries, keys and values (B, H, T, E) and that -> (B, H, T, E).
        sixteen_bit: whether it takes bf16 and fp16 alone.
    """

    layout: Callable[[Tensor, Any], Any]
    attend: Callable[[Tensor, Tensor, Tensor, Any], Tensor]
    sixteen_bit: bool
    by_row: bool


def flex_layout(documents_BT: Tensor, causal: bool | Tensor) -> Any:
    """Return the blocks of 128 x 128 logits in which any position sees another, and the rule within them."""
    from torch.nn.attention.flex_attention import create_block_mask

    rows, length = documents_BT.shape

    def sees(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        same = documents_BT[row, query] == documents_BT[row, key]
        if causal is False:
            return same
        return same & (key <= query if causal is True else (key <= query) | ~causal[row])

    return create_block_mask(sees, rows, None, length, length, device=documents_BT.device)


def flex(q_BHTE: Tensor, k_BHTE: Tensor, v_BHTE: Tensor, blocks: Any) -> Tensor:
    """Return torch's FlexAttention over the blocks of :func:`flex_layout`; all tensors (B, H, T, E)."""
    from torch.nn.attention.flex_attention import flex_attention

    mixed: Tensor = flex_attention(q_BHTE, k_BHTE, v_BHTE, block_mask=blocks)
    return mixed


class Pieces(NamedTuple):
    """Return the places where pieces of documents begin in the flattened rows.

    Attributes:
        cuts_P1: int32, first positions of all pieces, and the end of the last.
        longest: positions of a row: no piece is longer.
        causal: attend to the past only.
    """

    cuts_P1: Tensor
    longest: int
    causal: bool


def varlen_layout(documents_BT: Tensor, causal: bool) -> Pieces:
    """Return the places where pieces begin; how many there are is read from the device, a wait once a batch."""
    begins_BT = torch.ones_like(documents_BT, dtype=torch.bool)
    begins_BT[:, 1:] = documents_BT[:, 1:] != documents_BT[:, :-1]
    cuts_P = begins_BT.flatten().nonzero()[:, 0]
    end_1 = cuts_P.new_full((1,), documents_BT.numel())
    return Pieces(torch.cat([cuts_P, end_1]).int(), documents_BT.shape[1], causal)


def varlen(q_BHTE: Tensor, k_BHTE: Tensor, v_BHTE: Tensor, pieces: Pieces) -> Tensor:
    """Return torch's attention over sequences of any lengths; all tensors (B, H, T, E)."""
    from torch.nn.attention import varlen as kernel

    rows, _, length, _ = q_BHTE.shape
    # (B, H, T, E) -> (M, H, E): one line of tokens.
    q_MHE, k_MHE, v_MHE = (x_BHTE.transpose(1, 2).flatten(0, 1) for x_BHTE in (q_BHTE, k_BHTE, v_BHTE))
    mixed_MHE = kernel.varlen_attn(
        q_MHE, k_MHE, v_MHE, pieces.cuts_P1, pieces.cuts_P1, pieces.longest, pieces.longest,
        window_size=(-1, 0) if pieces.causal else (-1, -1),
    )  # fmt: skip
    assert isinstance(mixed_MHE, Tensor)
    return mixed_MHE.unflatten(0, (rows, length)).transpose(1, 2)


PACKED = {
    "flex": PackedAttention(flex_layout, flex, sixteen_bit=False, by_row=True),
    "varlen": PackedAttention(varlen_layout, varlen, sixteen_bit=True, by_row=False),
}
"""Implementations by the name that ``execution.attention`` uses."""
