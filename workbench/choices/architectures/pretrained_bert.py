"""A ``post_ln`` model from transformers' BertForMaskedLM: same numbers, same logits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from workbench.base.errors import RecipeError
from workbench.choices.architectures.heads import TransformHead
from workbench.choices.architectures.modular import ModularStack
from workbench.choices.architectures.post_ln import EPS, PostLN
from workbench.choices.architectures.transformers_bert import weight_pairs
from workbench.choices.data.tokens import Vocabulary

if TYPE_CHECKING:
    from transformers import BertForMaskedLM


def from_transformers(bert: BertForMaskedLM, attention: str = "plain") -> tuple[PostLN, ModularStack, TransformHead]:
    """Return the choice, backbone and head that compute what ``bert`` computes: logits (B, T, V) of full rows,
    segment A.

    Args:
        bert: any absolute-position BERT with GELU.

    Returns:
        The choice that describes the model, and the modules with copies of the weights, on the CPU in fp32.

    Raises:
        RecipeError: a variant of BERT that post_ln does not express; the message names the field.
    """
    config = bert.config
    legal = {"hidden_act": "gelu", "layer_norm_eps": EPS, "type_vocab_size": 2, "is_decoder": False}
    for field, value in legal.items():
        if getattr(config, field) != value:
            raise RecipeError(
                f"this BERT has {field} = {getattr(config, field)!r}; post_ln computes {value!r} only, "
                "so its logits would differ; choose a checkpoint of the original BERT family"
            )
    choice = PostLN(
        layers=config.num_hidden_layers,
        width=config.hidden_size,
        heads=config.num_attention_heads,
        ffn_width=config.intermediate_size,
        dropout=config.hidden_dropout_prob,
        tied=config.tie_word_embeddings,
    )
    # Only the size matters to an architecture; special ids belong to the tokenizer.
    vocabulary = Vocabulary(config.vocab_size, config.vocab_size, *([config.pad_token_id or 0] * 5))
    stack = choice.build(vocabulary, config.max_position_embeddings, causal=False, attention=attention)
    head = TransformHead(stack.embedding, choice.tied)
    with torch.no_grad():
        for ours, theirs in weight_pairs(stack, head, bert):
            ours.copy_(torch.cat([part.to(ours.device, ours.dtype) for part in theirs]))
    return choice, stack, head
