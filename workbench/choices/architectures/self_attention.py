"""The attention half of a block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from workbench.choices.architectures.positions import rotate
from workbench.ops.attention import attention_named, attention_probabilities
from workbench.ops.local_attention import in_chunks, seen_chunks, split_chunks
from workbench.ops.packed_attention import PACKED
from workbench.ops.recompute import recomputed

# Shape legend: B rows, T positions, D width, H heads, E width of a head, N chosen positions of the whole batch. A bias
# has 1 in place of H where all heads share it.


class BlockContext(NamedTuple):
    """Hold the values that every block of one forward pass shares, computed once per batch.

    Attributes:
        bias_BHTT: what is added to attention logits, (B, H, T, T): the mask (see ``ops.attention.document_bias``), and
            positions where they are told there; None beside ``packed``.
        rotation_TE: cosines and signed sines of the rotary angles, two fp32 tensors; None without rotary positions.
        local_bias: of layers that see a window only: (B, H, T, T), or the band (B, H, T / C, C, 3C) for chunks of C
            (see ``ops.local_attention``); None in models without such layers.
        causal: attend to the past only.
        packed: instead of a bias, what an implementation of ``ops.packed_attention`` knows of the batch.
        tokens_BT: ids as the model sees them, for tables of values; None in models without.
    """

    bias_BHTT: Tensor | None
    rotation_TE: tuple[Tensor, Tensor] | None = None
    local_bias: Tensor | None = None
    causal: bool = False
    packed: Any = None
    tokens_BT: Tensor | None = None


class SelfAttention(nn.Module):
    """Multi-head self-attention, (B, T, D) -> (B, T, D), one product for queries, keys and values.

    Args:
        width: D.
        heads: H, must divide D.
        bias: add biases to both products.
        implementation: name in ``ops.attention.ATTENTION`` or ``ops.packed_attention.PACKED``.
        dropout: of attention probabilities, while training.
        local: see the window of the context's ``local_bias`` only.
        untied: positions have logits of their own (TUPE); content's are then scaled by 1 / sqrt(2 E).

    Attributes:
        values: table (V, D) of what each token adds to its own values; None for none.
        recomputes: the backward pass finds queries, keys and values, and computes probabilities (B, H, T, T) again.
    """

    recomputes: bool = False

    def __init__(
        self,
        width: int,
        heads: int,
        bias: bool,
        implementation: str,
        dropout: float = 0.0,
        *,
        local: bool = False,
        untied: bool = False,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)
        self.packed = PACKED.get(implementation)
        # Of those that go by documents, plain serves where a bias is asked for.
        self.attention = attention_named("plain" if self.packed else implementation)
        self.dropout = dropout
        self.local, self.untied = local, untied
        self.values: nn.Embedding | None = None

    def project(self, x_BTD: Tensor, context: BlockContext) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values (B, H, T, E), positions applied."""
        # (B, T, 3D) -> (B, T, 3, H, E) -> three of (B, T, H, E), views
        q, k, v = self.qkv(x_BTD).unflatten(-1, (3, self.heads, -1)).unbind(2)
        if context.rotation_TE is not None:
            q, k = rotate(q, *context.rotation_TE), rotate(k, *context.rotation_TE)
        if self.values is not None:
            assert context.tokens_BT is not None
            v = v + self.values(context.tokens_BT).unflatten(-1, (self.heads, -1)).to(v.dtype)
        if self.untied:
            # Every implementation divides by sqrt(E); this is the rest of sqrt(2 E).
            q = q * 2**-0.5
        # (B, T, H, E) -> (B, H, T, E), still views
        return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)

    def forward(self, x_BTD: Tensor, context: BlockContext, rows_N: Tensor | None = None) -> Tensor:
        """Mix positions within documents: (B, T, D) -> (B, T, D), or (N, D) for the flat positions ``rows_N``."""
        q, k, v = self.project(x_BTD, context)
        if self.packed is not None and context.packed is not None:
            # Keeps no probabilities, so there is nothing to compute again.
            mixed_BHTE = self.packed.attend(q, k, v, context.packed)
        else:
            dropout = self.dropout if self.dropout and self.training else 0.0
            bias, chunked = self._bias(context)
            mix: Callable[..., Tensor] = self.attention
            arguments: tuple[Any, ...] = (q, k, v, bias, dropout)
            if chunked:
                mix, arguments = in_chunks, (self.attention, q, k, v, bias, context.causal, dropout)
            mixed_BHTE = recomputed(mix, *arguments) if self.recomputes else mix(*arguments)
        # (B, H, T, E) -> (B, T, H, E) -> (B, T, D)
        mixed_BTD = mixed_BHTE.transpose(1, 2).flatten(2)
        # Rows are picked before the output product, which then costs N instead of B * T positions.
        return self.out(mixed_BTD if rows_N is None else mixed_BTD.flatten(0, 1)[rows_N])

    def entropy(self, x_BTD: Tensor, context: BlockContext) -> Tensor:
        """Return mean entropy in nats of the attention rows (B, H, T, T), 0-d."""
        bias, chunked = self._bias(context)
        q, k, _ = self.project(x_BTD, context)
        if chunked:
            chunk = bias.shape[3]
            q, k = split_chunks(q, chunk), seen_chunks(k, chunk, context.causal)
        return torch.special.entr(attention_probabilities(q, k, bias)).sum(-1).mean()

    def _bias(self, context: BlockContext) -> tuple[Tensor, bool]:
        """This layer's bias, and whether it is the band of chunks."""
        if not self.local:
            assert context.bias_BHTT is not None
            return context.bias_BHTT, False
        assert context.local_bias is not None
        return context.local_bias, context.local_bias.dim() == 5
