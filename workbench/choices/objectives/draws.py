"""Draws from a model's prediction, each a function of (seed, sample, position): no generator, no state."""

from __future__ import annotations

import torch
from torch import Tensor

from workbench.choices.objectives.corruption import random_bits

# Shape legend: B rows, T positions, N slots, V vocabulary rows, K draws of a slot.

FILL, WORDS, CANDIDATES = 11, 12, 32
"""Purposes of :func:`~workbench.choices.objectives.corruption.random_bits`; candidate k takes CANDIDATES + k."""


def uniforms(seed: int, purpose: int, samples_B: Tensor, length: int) -> Tensor:
    """Return one number in [0, 1) for every position of every sample, (B, T), float64.

    Args:
        seed: of the recipe.
        purpose: see :func:`~workbench.choices.objectives.corruption.random_bits`.
        samples_B: int64 global sample indices.
        length: T, positions of a row.
    """
    # The upper 53 of 63 random bits.
    return (random_bits(seed, purpose, samples_B, length) >> 10).double() * 2.0**-53


def draw_tokens(logits_NV: Tensor, uniform_NK: Tensor) -> Tensor:
    """Draw tokens of each row from softmax(logits), with replacement, by inverting its distribution function.

    The same distribution as argmax(logits + Gumbel noise), from one random number instead of V.

    Args:
        logits_NV: float32, (N, V).
        uniform_NK: float64 in [0, 1), (N, K).

    Returns:
        int64 tokens, (N, K): the first ones at which the cumulated probability exceeds the draw.

    Example:
        >>> logits = torch.tensor([[0.25, 0.5, 0.25]]).log()
        >>> draw_tokens(logits, torch.tensor([[0.1, 0.3, 0.9]])).tolist()
        [[0, 1, 2]]
    """
    cumulated_NV = logits_NV.softmax(-1).cumsum(-1)
    # Of the sum that rounding left, not of 1: no draw may fall behind the last token.
    threshold_NK = uniform_NK.to(logits_NV.dtype) * cumulated_NV[:, -1:]
    # A draw next to 1 becomes 1 in float32.
    return torch.searchsorted(cumulated_NV, threshold_NK, right=True).clamp(max=logits_NV.shape[1] - 1)
