"""Blocks that normalise after each residual, and the backbone that is built from them."""

from __future__ import annotations

from torch import Tensor

from workbench.choices.architectures.modular import Modular, ModularStack
from workbench.choices.architectures.self_attention import BlockContext
from workbench.choices.architectures.stack import Block, drop

# Shape legend: B rows, T positions, D width, N chosen positions of the whole batch.

EPS = 1e-12
"""Of every LayerNorm, as in the released weights of BERT."""


class PostNormBlock(Block):
    """h = LN(x + s Attn(x)); y = LN(h + s FFN(h)), each of shape (B, T, D).

    Args:
        choice: the knobs.
        layer: counted from 0.
        attention: name of the attention implementation.
    """

    def __init__(self, choice: Modular, layer: int, attention: str) -> None:
        super().__init__()
        self.attention = choice.build_attention(layer, attention)
        self.attention_norm = choice.build_norm()
        self.feed_forward = choice.build_feed_forward()
        self.feed_forward_norm = choice.build_norm()
        self.dropout = choice.dropout

    def forward(self, x_BTD: Tensor, scale: Tensor, context: BlockContext, rows_N: Tensor | None = None) -> Tensor:
        """(B, T, D) -> (B, T, D), or (N, D) for the flat positions ``rows_N``; ``scale`` is 0-d."""
        branch = self.attention(x_BTD, context, rows_N)
        # (B, T, D) -> (N, D): once positions are mixed only the labelled ones matter, and the residual follows them.
        x = x_BTD if rows_N is None else x_BTD.flatten(0, 1)[rows_N]
        x = self.attention_norm(x + scale * drop(branch, self.dropout, self.training))
        return self.feed_forward_norm(x + scale * drop(self.feed_forward(x), self.dropout, self.training))

    def entropy(self, x_BTD: Tensor, context: BlockContext) -> Tensor:
        """Mean entropy in nats of attention rows (B, H, T, T), 0-d; the block's input needs no norm here."""
        return self.attention.entropy(x_BTD, context)


class PostNormStack(ModularStack):
    """Backbone of ``post_ln``, tokens (B, T) -> states (B, T, D); arguments as for :class:`ModularStack`."""
