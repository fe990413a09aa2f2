"""The modern block: norm before each branch."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from workbench.choices.architectures.modular import RESIDUAL_HELP, Modular, ResidualInit
from workbench.choices.architectures.self_attention import BlockContext
from workbench.choices.architectures.stack import Block
from workbench.choices.choice import knob

# Shape legend: B rows, T positions, D width, N chosen positions of the whole batch.


class PreLN(Modular):
    """Normalisation before each branch and at the end; RoPE, RMSNorm and no biases unless changed.

    h = x + s Attn(norm(x)); y = h + s FFN(norm(h)), all (B, T, D), with s the layer's residual scale from the plan. The
    same block is an encoder (masked objectives) or a decoder (causal ones).

    Source: Xiong et al. 2020 (arXiv 2002.04745); projections into the residual stream start at
    0.02 / sqrt(2 layers), as GPT-2 has it.
    """

    kind: Literal["pre_ln"] = "pre_ln"
    # Each layer adds two branches to the stream: unscaled, its variance would grow with depth.
    residual_init: ResidualInit = knob("scaled", RESIDUAL_HELP)

    def silent_is_identity(self) -> bool:
        """True: nothing but the branches, (B, T, D) each, stands between a block's input and its output."""
        return True

    def build_block(self, layer: int, attention: str) -> PreNormBlock:
        """Return a :class:`PreNormBlock`, (B, T, D) -> (B, T, D)."""
        return PreNormBlock(self, layer, attention)


class PreNormBlock(Block):
    """h = x + s Attn(norm(x)); y = h + s FFN(norm(h)), each of shape (B, T, D)."""

    def __init__(self, choice: PreLN, layer: int, attention: str) -> None:
        super().__init__()
        self.attention_norm = choice.build_norm()
        self.attention = choice.build_attention(layer, attention)
        self.feed_forward_norm = choice.build_norm()
        self.feed_forward = choice.build_feed_forward()
        self.dropout = choice.dropout

    def forward(self, x_BTD: Tensor, scale: Tensor, context: BlockContext, rows_N: Tensor | None = None) -> Tensor:
        """Map (B, T, D) -> (B, T, D), or (N, D) for the flat positions ``rows_N``; ``scale`` is 0-d."""
        branch = self.attention(self.attention_norm(x_BTD), context, rows_N)
        # (B, T, D) -> (N, D): once positions are mixed only the labelled ones matter, and the residual follows them.
        x = x_BTD if rows_N is None else x_BTD.flatten(0, 1)[rows_N]
        x = x + scale * self.drop(branch)
        return x + scale * self.drop(self.feed_forward(self.feed_forward_norm(x)))

    def entropy(self, x_BTD: Tensor, context: BlockContext) -> Tensor:
        """Return mean entropy in nats of attention rows (B, H, T, T), 0-d,
        on the normalised input as in :meth:`forward`.
        """
        return self.attention.entropy(self.attention_norm(x_BTD), context)
