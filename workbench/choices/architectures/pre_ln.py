"""The modern block: norm before each branch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from torch import Tensor, nn

from workbench.choices.architectures.architecture import Architecture
from workbench.choices.architectures.feed_forward import ACTIVATIONS, FeedForward, gated_width
from workbench.choices.architectures.norms import build_norm
from workbench.choices.architectures.self_attention import BlockContext, SelfAttention
from workbench.choices.architectures.stack import Block, Stack, drop
from workbench.choices.choice import Problem, knob
from workbench.choices.data.tokens import Batch, Vocabulary

# Shape legend: B rows, T positions, D width, N chosen positions of the whole batch.


class PreLN(Architecture):
    """Normalisation before each branch and at the end, no biases, RoPE or learned positions, optional GLU.

    h = x + s Attn(norm(x)); y = h + s FFN(norm(h)), all (B, T, D), with s the layer's residual scale from the plan. The
    same block is an encoder (masked objectives) or a decoder (causal ones).

    Source: Xiong et al. 2020 (arXiv 2002.04745); projections into the residual stream start at
    0.02 / sqrt(2 layers), as GPT-2 has it.
    """

    kind: Literal["pre_ln"] = "pre_ln"
    norm: Literal["layer_norm", "rms_norm"] = knob("rms_norm", "normalisation")
    positions: Literal["rope", "learned"] = knob("rope", "how positions are told")
    ffn: Literal["gelu", "relu2", "geglu", "swiglu"] = knob("relu2", "feed-forward activation; the last two are gated")
    dropout: float = knob(0.0, "dropout of embeddings and residual branches", ge=0, lt=1)

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Heads that do not divide the width, and heads of odd width E under rotary positions, which turn pairs."""
        yield from super().problems(recipe)
        if self.positions == "rope" and self.width % self.heads == 0 and self.width // self.heads % 2:
            yield Problem(
                "architecture.heads",
                f"{self.heads} heads of width {self.width // self.heads} cannot rotate pairs; "
                "choose heads so that width / heads is even, or positions 'learned'",
            )

    def build(self, vocabulary: Vocabulary, sequence_length: int, *, causal: bool, attention: str) -> PreNormStack:
        """A :class:`PreNormStack` in fp32: tokens (B, T) -> states (B, T, D)."""
        return PreNormStack(self, vocabulary.size, sequence_length, causal, attention)

    def block_parameters(self) -> int:
        """Matrices (D, 3D), (D, D) and those of the feed-forward part: three of them when it is gated, else two."""
        gated = ACTIVATIONS[self.ffn][1]
        feed = 3 * self.width * gated_width(self.inner_width) if gated else 2 * self.width * self.inner_width
        return 4 * self.width**2 + feed


class PreNormBlock(Block):
    """h = x + s Attn(norm(x)); y = h + s FFN(norm(h)), each of shape (B, T, D).

    Args:
        choice: the knobs.
        attention: name of the attention implementation.
    """

    def __init__(self, choice: PreLN, attention: str) -> None:
        super().__init__()
        self.attention_norm = build_norm(choice.norm, choice.width)
        self.attention = SelfAttention(choice.width, choice.heads, bias=False, implementation=attention)
        self.feed_forward_norm = build_norm(choice.norm, choice.width)
        self.feed_forward = FeedForward(choice.width, choice.inner_width, choice.ffn, bias=False)
        self.dropout = choice.dropout

    def forward(self, x_BTD: Tensor, scale: Tensor, context: BlockContext, rows_N: Tensor | None = None) -> Tensor:
        """(B, T, D) -> (B, T, D), or (N, D) for the flat positions ``rows_N``; ``scale`` is 0-d."""
        branch = self.attention(self.attention_norm(x_BTD), context, rows_N)
        # (B, T, D) -> (N, D): once positions are mixed only the labelled ones matter, and the residual follows them.
        x = x_BTD if rows_N is None else x_BTD.flatten(0, 1)[rows_N]
        x = x + scale * drop(branch, self.dropout, self.training)
        return x + scale * drop(self.feed_forward(self.feed_forward_norm(x)), self.dropout, self.training)

    def entropy(self, x_BTD: Tensor, context: BlockContext) -> Tensor:
        """Mean entropy in nats of attention rows (B, H, T, T), 0-d, on the normalised input as in :meth:`forward`."""
        return self.attention.entropy(self.attention_norm(x_BTD), context)


class PreNormStack(Stack):
    """Backbone of :class:`PreLN`: tokens (B, T) -> states (B, T, D).

    Args:
        choice: the knobs.
        vocabulary_size: rows of the embedding.
        sequence_length: longest row, T.
        causal: attend to the past only.
        attention: name of the attention implementation.
    """

    def __init__(self, choice: PreLN, vocabulary_size: int, sequence_length: int, causal: bool, attention: str) -> None:
        rotary_dim = choice.width // choice.heads if choice.positions == "rope" else 0
        blocks = [PreNormBlock(choice, attention) for _ in range(choice.layers)]
        embedding = nn.Embedding(vocabulary_size, choice.width)
        super().__init__(blocks, embedding, sequence_length, causal, rotary_dim)
        self.positions = nn.Embedding(sequence_length, choice.width) if choice.positions == "learned" else None
        self.final = build_norm(choice.norm, choice.width)
        self.dropout = choice.dropout
        # Last, when all modules exist: weights are drawn in their order, which thereby is part of what a seed means.
        self.apply(choice.initialise)
        for block in blocks:
            # Each layer adds two branches to the stream: unscaled, its variance would grow with depth.
            for residual_output in (block.attention.out, block.feed_forward.down):
                nn.init.normal_(residual_output.weight, std=0.02 / (2 * choice.layers) ** 0.5)

    def embed(self, tokens_BT: Tensor, batch: Batch) -> Tensor:
        """Tokens (B, T) -> (B, T, D); learned positions are added, rotary ones come in at the attention."""
        x_BTD = self.embedding(tokens_BT)
        if self.positions is not None:
            x_BTD = x_BTD + self.positions(batch.positions_BT)
        return drop(x_BTD, self.dropout, self.training)
