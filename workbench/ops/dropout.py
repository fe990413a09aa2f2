"""Dropout whose mask a compiled CPU kernel makes for next to nothing."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

_HALF = 1 << 16
_ROUNDS = (0x6D2B, 0x5A35, 0x7FED, 0x4E6B)
"""Odd factors below 2**15: a product with 16 bits, and 16 bits more, stay below 2**31, so nothing ever overflows."""


def dropped(x: Tensor, probability: float) -> Tensor:
    """Return dropout of x, any shape: each element is 0 with ``probability`` and scaled up otherwise.

    Compiled for a CPU, torch draws every element's random number by itself, in code without vectors. Forward and
    backward of LayerNorm(x + dropout(y)), 4,096 x 256, one thread of an AVX-512 machine: 4.0 ms without dropout, 28.7
    with torch's, 4.7 with :func:`hashed_mask`. Eager code and GPUs take torch's own.
    """
    if x.device.type != "cpu" or not torch.compiler.is_compiling() or x.numel() >= 1 << 31:
        return F.dropout(x, probability)
    gone = round(probability * _HALF)
    # Scaled by what is really kept: the mean stays x although the probability is rounded to 16 bits.
    return torch.where(hashed_mask(x, gone), x * (_HALF / (_HALF - gone)), 0.0)


def hashed_mask(x: Tensor, gone: int) -> Tensor:
    """Return True where an element of x stays, False for a share of ``gone`` / 2**16: bool, of x's shape.

    A Feistel network of four rounds on the element's number, with keys that are drawn once: a permutation of 32 bits,
    made of additions and products that vector units have. Another call has other keys, from torch's own generator.
    """
    keys_4 = torch.randint(_HALF, (len(_ROUNDS),), dtype=torch.int32, device=x.device)
    number = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape)
    low, high = number & (_HALF - 1), number >> 16
    for place, factor in enumerate(_ROUNDS):
        low, high = high ^ (((low * factor + keys_4[place]) >> 9) & (_HALF - 1)), low
    return low >= gone
