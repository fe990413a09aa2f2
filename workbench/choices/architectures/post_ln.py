"""BERT as published, and what becomes of it when its parts are exchanged."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from torch import Tensor, nn

from workbench.choices.architectures.architecture import Backbone
from workbench.choices.architectures.modular import POSITIONS_HELP, Activation, Modular, Norm, Positions
from workbench.choices.architectures.self_attention import BlockContext
from workbench.choices.architectures.stack import Block
from workbench.choices.architectures.transformers_bert import to_transformers
from workbench.choices.choice import knob
from workbench.choices.data.tokens import Vocabulary

# Shape legend: B rows, T positions, D width, N chosen positions of the whole batch.

EPS = 1e-12
"""Epsilon of every LayerNorm, as in the released weights of BERT."""


class PostLN(Modular):
    """Normalisation after each residual; with its defaults BERT as published: learned positions, biases, GELU.

    h = LN(x + s Attn(x)); y = LN(h + s FFN(h)), all (B, T, D), with s the layer's residual scale from the plan (1 in
    BERT). Weights convert to and from transformers' ``BertForMaskedLM`` (see ``transformers_bert``) while the knobs are
    BERT's (:attr:`is_bert`).

    Source: Devlin et al. 2019 (arXiv 1810.04805) and its released weights.
    """

    kind: Literal["post_ln"] = "post_ln"
    positions: Positions = knob("learned", POSITIONS_HELP)
    norm: Norm = knob("layer_norm", "normalisation")
    final_norm: bool = knob(False, "normalise once more after the last block")
    embedding_norm: bool = knob(True, "normalise the sum of the embeddings")
    ffn: Activation = knob("gelu", "feed-forward activation; the last two are gated")
    bias: bool = knob(True, "biases in every product of the blocks and in layer_norm")
    head: Literal["transform", "linear"] = knob(
        "transform", "layers before the output matrix: BERT's dense + GELU + norm, or none"
    )
    dropout: float = knob(0.1, "dropout of embeddings, attention and residual branches", ge=0, lt=1)

    segments: ClassVar[bool] = True
    attention_dropout: ClassVar[bool] = True
    layer_norm_eps: ClassVar[float] = EPS

    @property
    def is_bert(self) -> bool:
        """Return True if backbone and head are those of ``BertForMaskedLM``: every knob but the sizes is BERT's."""
        sizes = {"layers", "width", "heads", "ffn_width", "dropout", "tied", "residual_init", "notes"}
        mine = self.model_dump(exclude=sizes | ({"global_every"} if self.local_window is None else set()))
        return all(type(self).model_fields[name].default == value for name, value in mine.items())

    def build_block(self, layer: int, attention: str) -> PostNormBlock:
        """Return a :class:`PostNormBlock`, (B, T, D) -> (B, T, D)."""
        return PostNormBlock(self, layer, attention)

    def save_pretrained(
        self, backbone: Backbone, head: nn.Module, folder: Path, vocabulary: Vocabulary, layers: int
    ) -> bool:
        """As ``BertForMaskedLM``; False for causal models and wherever a knob is not BERT's."""
        if not self.is_bert or getattr(backbone, "causal", False):
            return False  # BertForMaskedLM has BERT's own parts and sees both sides
        to_transformers(backbone, head, vocabulary.pad, layers).save_pretrained(folder)
        return True


class PostNormBlock(Block):
    """h = LN(x + s Attn(x)); y = LN(h + s FFN(h)), each of shape (B, T, D)."""

    def __init__(self, choice: Modular, layer: int, attention: str) -> None:
        super().__init__()
        self.attention = choice.build_attention(layer, attention)
        self.attention_norm = choice.build_norm()
        self.feed_forward = choice.build_feed_forward()
        self.feed_forward_norm = choice.build_norm()
        self.dropout = choice.dropout

    def forward(self, x_BTD: Tensor, scale: Tensor, context: BlockContext, rows_N: Tensor | None = None) -> Tensor:
        """Map (B, T, D) -> (B, T, D), or (N, D) for the flat positions ``rows_N``; ``scale`` is 0-d."""
        branch = self.attention(x_BTD, context, rows_N)
        # (B, T, D) -> (N, D): once positions are mixed only the labelled ones matter, and the residual follows them.
        x = x_BTD if rows_N is None else x_BTD.flatten(0, 1)[rows_N]
        x = self.attention_norm(x + scale * self.drop(branch))
        return self.feed_forward_norm(x + scale * self.drop(self.feed_forward(x)))

    def entropy(self, x_BTD: Tensor, context: BlockContext) -> Tensor:
        """Return mean entropy in nats of attention rows (B, H, T, T), 0-d; the block's input needs no norm here."""
        return self.attention.entropy(x_BTD, context)
