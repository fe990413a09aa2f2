"""Add positions: tables added to the input, rotations of queries and keys, biases on attention logits."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

# Shape legend: B rows, T positions, D width, H heads, E width of a head.

BUCKETS, LONGEST_DISTANCE = 32, 128
"""T5's relative buckets, and the distance in tokens from which on all share the last (Raffel et al. 2020)."""


def sinusoids(length: int, width: int, base: float = 10_000.0) -> Tensor:
    """Return PE[t, 2i] = sin(t / base^(2i/D)), PE[t, 2i + 1] = cos of the same (Vaswani et al. 2017, section 3.5).

    Args:
        length: T.
        width: D; an odd one ends with a sine.
        base: largest wavelength is 2 pi base.

    Returns:
        fp32 table of shape (T, D).
    """
    # float64 up to here: at position 65,535 an fp32 angle has steps of 0.004 radians.
    rate = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * rate
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(1)[:, :width].float()


def rotary_tables(length: int, head_dim: int, base: float = 10_000.0) -> tuple[Tensor, Tensor]:
    """Return cosines and signed sines for :func:`rotate` (Su et al. 2021, arXiv 2104.09864, eq. 34).

    Positions count along the row, not within a document: attention sees differences of positions only, and both
    ends of every visible pair lie in one document.

    Args:
        length: T.
        head_dim: E, even.
        base: largest wavelength is 2 pi base.

    Returns:
        cos_TE, sin_TE: fp32, shape (T, E); the first half of ``sin_TE`` is negated.
    """
    # float64 for the reason given in sinusoids().
    rate_E2 = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    angle_TE2 = torch.arange(length, dtype=torch.float64)[:, None] * rate_E2
    cos, sin = angle_TE2.cos().float(), angle_TE2.sin().float()
    # (T, E/2) -> (T, E). The sign lives in the table, so that rotate() swaps halves and never negates.
    return torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)


def rotate(x_BTHE: Tensor, cos_TE: Tensor, sin_TE: Tensor) -> Tensor:
    """Map (B, T, H, E) -> same: turn the pairs (e, e + E/2) by their position's angles, in fp32; returns x's precision.

    Args:
        cos_TE, sin_TE: (T, E), or (B, T, E) where rows differ.
    """
    first, second = x_BTHE.chunk(2, dim=-1)
    swapped_BTHE = torch.cat((second, first), dim=-1)
    # (T, E) -> (T, 1, E) for all heads. fp32: in bf16 the cosines of neighbouring positions are often equal.
    return (x_BTHE * cos_TE.unsqueeze(-2) + swapped_BTHE * sin_TE.unsqueeze(-2)).to(x_BTHE.dtype)


def alibi_slopes(heads: int) -> Tensor:
    """Return slope of each head, (H,) in fp32: 2^(-8 h / H), h = 1..H, where H is a power of two.

    Other numbers take the slopes of the next lower power, then every second one of the next higher, as the authors'
    code does (Press et al. 2022, arXiv 2108.12409).

    Example:
        >>> alibi_slopes(4).tolist()
        [0.25, 0.0625, 0.015625, 0.00390625]
    """

    def of_power(count: int) -> list[float]:
        return [2.0 ** (-8 * h / count) for h in range(1, count + 1)]

    lower = 2 ** math.floor(math.log2(heads))
    return torch.tensor((of_power(lower) + of_power(2 * lower)[::2])[:heads])


def distances(length: int, device: torch.device | None = None) -> Tensor:
    """Return s - t for query t (first axis) and key s (last axis), int64, shape (T, T)."""
    place_T = torch.arange(length, device=device)
    return place_T[None, :] - place_T[:, None]


def relative_buckets(distance: Tensor, causal: bool) -> Tensor:
    """Return T5's bucket of each distance key - query: one each up to a quarter (causal: half) of the buckets,
    then log steps.

    Both sides: the first half of the buckets for the key at or before the query, the second for the key behind it.
    Causal: all buckets for the past.

    Args:
        distance: int64 of any shape, in tokens.
        causal: keys behind the query do not occur.

    Returns:
        int64 in 0 .. BUCKETS - 1, shape as ``distance``.
    """
    count = BUCKETS if causal else BUCKETS // 2
    exact = count // 2
    away = (-distance).clamp(min=0) if causal else distance.abs()
    # clamp: the logarithm of what falls in the exact buckets is thrown away, and must not be -inf.
    steps = (away.clamp(min=exact) / exact).log() / math.log(LONGEST_DISTANCE / exact) * (count - exact)
    bucket = torch.where(away < exact, away, (exact + steps.long()).clamp(max=count - 1))
    return bucket if causal else bucket + count * (distance > 0)


def toeplitz(values_KH: Tensor) -> Tensor:
    """Return (2T - 1, H) values of the distances -(T - 1) .. T - 1 -> (H, T, T):
    [h, t, s] is the value of distance s - t.
    """
    length = (values_KH.shape[0] + 1) // 2
    # Row i of the windows holds values i .. i + T - 1; query t needs those from T - 1 - t on. Windows are views, and
    # their gradient is a sum, where indexing with (T, T) places would scatter T * T * H numbers one by one.
    return values_KH.t().unfold(1, length, 1).flip(1)


class Alibi(nn.Module):
    """-slope * |s - t| on the logits of every pair: attention that fades with distance, without parameters.

    Symmetric for models that see both sides; a causal mask leaves the published, one-sided form. Distances along the
    row are those within the document, since both ends of a visible pair lie in one piece.

    Args:
        heads: H.
    """

    slopes: Tensor

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.register_buffer("slopes", alibi_slopes(heads), persistent=False)

    def forward(self, positions_BT: Tensor, cls_BT: Tensor) -> Tensor:
        """Return bias (1, H, T, T) in fp32, the same for all rows; where [CLS] stands does not matter."""
        away_TT = distances(positions_BT.shape[1], positions_BT.device).abs()
        return (-self.slopes[:, None, None] * away_TT)[None]


class Tupe(nn.Module):
    """Untied positional logits, (B, H, T, T): (p_i Uq)(p_j Uk)^T / sqrt(2 E), and [CLS] freed from its place.

    p is the LayerNorm of a learned table of positions within the piece; nothing is added to the input, and queries
    and keys of the content are scaled by 1 / sqrt(2 E) as well. Computed once per batch and shared by all layers.
    With ``relative``, T5's bucket of s - t is added (TUPE-R). Then pairs with [CLS] are reset: a learned number per
    head where [CLS] looks at others or itself, another where others look at [CLS]. Real [CLS] tokens only: a piece
    that continues a document from an earlier row has none, and nothing is reset there.

    Source: Ke et al. 2021 (arXiv 2006.15595), equations 7 to 10. The authors' code takes the two numbers from two more
    rows of the position table; here they are parameters of their own, as in the paper, starting at 0.

    Args:
        width: D.
        heads: H.
        length: longest row, T.
        relative: add the buckets.
        causal: a [CLS] at the head of its piece then sees itself alone, so its own number is left out.
    """

    buckets_K: Tensor

    def __init__(self, width: int, heads: int, length: int, relative: bool, causal: bool) -> None:
        super().__init__()
        self.heads, self.length = heads, length
        self.table = nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.relative = nn.Embedding(BUCKETS, heads) if relative else None
        if relative:
            # All distances that occur, -(T - 1) .. T - 1.
            buckets_K = relative_buckets(torch.arange(1 - length, length), causal)
            self.register_buffer("buckets_K", buckets_K, persistent=False)
        self.from_cls = None if causal else nn.Parameter(torch.zeros(heads))
        self.to_cls = nn.Parameter(torch.zeros(heads))

    def forward(self, positions_BT: Tensor, cls_BT: Tensor) -> Tensor:
        """Return the bias (B, H, T, T)."""
        length = positions_BT.shape[1]
        p_TD = self.norm(self.table.weight[:length])
        # Projected once per place, then looked up per token. A look-up of finished products in (H, T, T) would save
        # the batched product below, but its gradient scatters B * H * T * T numbers: 1.6 times as long in bf16 at
        # 32 x 128 tokens and 4 heads, 2.2 times at 8 x 512.
        q, k = (
            nn.functional.embedding(positions_BT, product(p_TD)).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for product in (self.query, self.key)
        )
        bias_BHTT = (q * (2 * q.shape[-1]) ** -0.5) @ k.transpose(-2, -1)
        if self.relative is not None:
            near_K = self.buckets_K[self.length - length : self.length + length - 1]
            # The table in the precision of the product: an fp32 sum would double what every layer reads.
            bias_BHTT = bias_BHTT + toeplitz(self.relative(near_K).to(bias_BHTT.dtype))
        bias_BHTT = torch.where(cls_BT[:, None, None, :], self.to_cls[:, None, None].to(bias_BHTT.dtype), bias_BHTT)
        if self.from_cls is None:
            return bias_BHTT
        return torch.where(cls_BT[:, None, :, None], self.from_cls[:, None, None].to(bias_BHTT.dtype), bias_BHTT)


def position_bias(kind: str, width: int, heads: int, length: int, causal: bool) -> nn.Module | None:
    """Return the module for biases on logits, (positions_BT, cls_BT) -> (1 or B, H, T, T); None where there is none.

    Args:
        kind: value of ``architecture.positions``.
        width, heads, length: D, H and the longest row T.
    """
    if kind == "alibi":
        return Alibi(heads)
    if kind in ("tupe_a", "tupe_r"):
        return Tupe(width, heads, length, kind == "tupe_r", causal)
    return None
