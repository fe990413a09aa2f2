"""Attention within a window: by a mask, or over chunks of the row that leave out what the window cannot reach.

A window of W tokens reaches W / 2 positions to either side, or the W - 1 positions before a position and itself when
causal. In chunks of C >= W / 2 positions, all that a query may see lies in three neighbouring chunks, so logits are
(B, H, T, 3C) instead of (B, H, T, T).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from workbench.ops.attention import Attention

# Shape legend: B rows, H heads (1 where all share), T positions, E width of a head, N = T / C chunks of C queries,
# K = 3C keys that a chunk may see.

SEEN_CHUNKS = 3
"""The query's own chunk and one to either side, or two before it when causal."""


def window_distances(window: int, causal: bool) -> tuple[int, int]:
    """Return least and greatest distance key - query that a window of so many tokens lets through."""
    return (1 - window, 0) if causal else (-(window // 2), window // 2)


def windowed(bias_BHTT: Tensor, window: int, causal: bool) -> Tensor:
    """Return the same bias, (B, H, T, T), with -inf for every pair farther apart than the window lets through."""
    low, high = window_distances(window, causal)
    near_TT = torch.ones(bias_BHTT.shape[-2:], dtype=torch.bool, device=bias_BHTT.device).tril_(high).triu_(low)
    return bias_BHTT.masked_fill(~near_TT, float("-inf"))


def chunk_size(length: int, window: int) -> int:
    """Return C for rows of T tokens, the least divisor of T that is at least W / 2 and 32; 0 where a mask is faster.

    Forward and backward of plain attention on a CPU, chunks against mask, bf16 and fp32: 1.1 to 1.5 times the time
    where a row is 1.3 times as long as the keys K that a chunk sees, 0.5 to 0.8 at 2.7 times, 0.2 to 0.4 at 2.7 to 5
    times, 0.1 at 10.

    Args:
        length: T.
        window: W, in tokens.
    """
    # Below 32 positions the products are too small to run well.
    least = max(32, window // 2)
    size = next((size for size in range(least, length + 1) if length % size == 0), length)
    return size if length >= 2 * SEEN_CHUNKS * size else 0


def banded(bias_BHTT: Tensor, chunk: int, window: int, causal: bool) -> Tensor:
    """Return the part of a bias that chunks need: (B, H, T, T) -> (B, H, N, C, K),
    -inf beyond the window and the row.
    """
    before = chunk * (2 if causal else 1)
    rows, heads, length, _ = bias_BHTT.shape
    width = length + (SEEN_CHUNKS - 1) * chunk
    padded = F.pad(bias_BHTT, (before, width - length - before), value=float("-inf")).contiguous()
    # Chunk n sees the columns n C .. n C + K of the padded rows n C .. n C + C: a view that steps down the diagonal.
    band = padded.as_strided(
        (rows, heads, length // chunk, chunk, SEEN_CHUNKS * chunk),
        (heads * length * width, length * width, chunk * width + chunk, width, 1),
    )
    low, high = window_distances(window, causal)
    query_C = torch.arange(chunk, device=band.device) + before
    distance_CK = torch.arange(SEEN_CHUNKS * chunk, device=band.device)[None, :] - query_C[:, None]
    return band.masked_fill((distance_CK < low) | (distance_CK > high), float("-inf"))


def split_chunks(x_BHTE: Tensor, chunk: int) -> Tensor:
    """Map (B, H, T, E) -> (B, H, N, C, E), a view: the queries of each chunk."""
    return x_BHTE.unflatten(2, (-1, chunk))


def seen_chunks(x_BHTE: Tensor, chunk: int, causal: bool) -> Tensor:
    """Map (B, H, T, E) -> (B, H, N, K, E): the keys or values that each chunk of queries may see,
    zeros beyond the row.
    """
    before = 2 if causal else 1
    padded = F.pad(x_BHTE, (0, 0, before * chunk, (SEEN_CHUNKS - 1 - before) * chunk)).unflatten(2, (-1, chunk))
    count = padded.shape[2] - (SEEN_CHUNKS - 1)
    return torch.cat([padded[:, :, i : i + count] for i in range(SEEN_CHUNKS)], dim=3)


def in_chunks(
    attention: Attention,
    q_BHTE: Tensor,
    k_BHTE: Tensor,
    v_BHTE: Tensor,
    band_BHNCK: Tensor,
    causal: bool,
    dropout: float,
) -> Tensor:
    """Return ``attention`` within a window, (B, H, T, E), computed chunk by chunk.

    Args:
        attention: any of ``ops.attention.ATTENTION``.
        q_BHTE, k_BHTE, v_BHTE: queries, keys and values.
        band_BHNCK: from :func:`banded`, for the same ``causal``.
        causal: whether chunks look back only.
        dropout: of probabilities.
    """
    chunk = band_BHNCK.shape[3]
    k, v = seen_chunks(k_BHTE, chunk, causal), seen_chunks(v_BHTE, chunk, causal)
    return attention(split_chunks(q_BHTE, chunk), k, v, band_BHNCK, dropout).flatten(2, 3)
