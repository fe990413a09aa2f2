"""post_ln weights to and from transformers' BertForMaskedLM: same numbers, same logits, both ways."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from workbench.base.errors import RecipeError
from workbench.choices.architectures.heads import TransformHead
from workbench.choices.architectures.modular import ModularStack
from workbench.choices.architectures.stack import Block

if TYPE_CHECKING:
    from transformers import BertForMaskedLM

# transformers is imported inside functions: it takes seconds, and only import and export need it.


def to_transformers(backbone: nn.Module, head: nn.Module, pad: int = 0, layers: int | None = None) -> BertForMaskedLM:
    """Return a ``BertForMaskedLM`` with copies of these weights, on the CPU in fp32; logits (B, T, V) are the same.

    Args:
        backbone: built by ``post_ln`` for a masked objective.
        layers: of the backbone's, counted from the input; None for all (a model that grows may not have all yet).

    Returns:
        The model, in eval mode; its vocabulary is as large as the embedding (padding rows included).

    Raises:
        RecipeError: the model is not a BERT: another architecture, a causal one, or another head.
    """
    from transformers import BertConfig, BertForMaskedLM

    stack, transform = _require_bert(backbone, head)
    block = stack.blocks[0]
    assert isinstance(block, Block)
    vocabulary_size, width = stack.embedding.weight.shape
    config = BertConfig(
        vocab_size=vocabulary_size,
        hidden_size=width,
        num_hidden_layers=len(stack.blocks) if layers is None else layers,
        num_attention_heads=block.attention.heads,
        intermediate_size=block.feed_forward.up.out_features,
        hidden_act="gelu",
        hidden_dropout_prob=stack.dropout,
        attention_probs_dropout_prob=stack.dropout,
        max_position_embeddings=stack.sequence_length,
        layer_norm_eps=stack.choice.layer_norm_eps,
        pad_token_id=pad,
        tie_word_embeddings=transform.matrix is None,
    )
    bert = BertForMaskedLM(config).eval()
    with torch.no_grad():
        for ours, theirs in weight_pairs(stack, transform, bert):
            # Ours (3D, D) -> theirs, three of (D, D); everything else is one to one.
            for part, target in zip(ours.chunk(len(theirs)), theirs, strict=True):
                target.copy_(part)
    return bert


def _require_bert(backbone: nn.Module, head: nn.Module) -> tuple[ModularStack, TransformHead]:
    if not isinstance(backbone, ModularStack) or not isinstance(head, TransformHead) or backbone.causal:
        raise RecipeError(
            f"a {'causal ' if getattr(backbone, 'causal', False) else ''}{type(backbone).__name__} with a "
            f"{type(head).__name__} is no BertForMaskedLM; train with architecture post_ln, architecture.head "
            "'transform' and a masked objective, or export safetensors"
        )
    if not getattr(backbone.choice, "is_bert", False):
        raise RecipeError(
            f"{backbone.choice!r} is no BertForMaskedLM: leave every knob of post_ln but its sizes at BERT's value, "
            "or export safetensors"
        )
    return backbone, head


def weight_pairs(
    stack: ModularStack, head: TransformHead, bert: BertForMaskedLM
) -> Iterator[tuple[Tensor, list[Tensor]]]:
    """Yield (our weight, the transformers weights that make it up when concatenated along the first axis)."""
    embeddings, predictions = bert.bert.embeddings, bert.cls.predictions
    yield stack.embedding.weight, [embeddings.word_embeddings.weight]
    # Both are there in a BERT (see _require_bert).
    assert stack.positions is not None
    assert stack.token_types is not None
    yield stack.positions.weight, [embeddings.position_embeddings.weight]
    yield stack.token_types.weight, [embeddings.token_type_embeddings.weight]
    modules: list[tuple[Any, list[Any]]] = [
        (stack.embedding_norm, [embeddings.LayerNorm]),
        (head.dense, [predictions.transform.dense]),
        (head.norm, [predictions.transform.LayerNorm]),
    ]
    layers: Any = bert.bert.encoder.layer
    # Not strict: a model that has not grown up leaves with the layers that exist.
    blocks: Any = stack.blocks
    for block, layer in zip(blocks, layers, strict=False):
        attend, mixed = layer.attention.self, layer.attention.output
        modules += [
            (block.attention.qkv, [attend.query, attend.key, attend.value]),
            (block.attention.out, [mixed.dense]),
            (block.attention_norm, [mixed.LayerNorm]),
            (block.feed_forward.up, [layer.intermediate.dense]),
            (block.feed_forward.down, [layer.output.dense]),
            (block.feed_forward_norm, [layer.output.LayerNorm]),
        ]
    for ours, theirs in modules:
        yield ours.weight, [module.weight for module in theirs]
        yield ours.bias, [module.bias for module in theirs]
    yield head.bias, [predictions.bias]
    if head.matrix is not None:
        yield head.matrix, [predictions.decoder.weight]
        # Untied, the product has a bias of its own beside `predictions.bias`, and it is the one that counts: the later
        # pair of the two is what we read.
        yield head.bias, [predictions.decoder.bias]
