from __future__ import annotations

import torch

from tests.choices.architectures.packing import VOCABULARY, documents, pack
from workbench.choices.architectures.post_ln import EPS, PostLN


def test_branches_are_scaled_before_the_norm() -> None:
    torch.manual_seed(0)
    stack = PostLN(layers=1, width=32, heads=4, dropout=0).build(VOCABULARY, 16, causal=False, attention="plain")
    batch = pack(documents(9, 7))
    block, context = stack.blocks[0], stack.context(batch.tokens_BT, batch)
    x = stack.embed(batch.tokens_BT, batch)
    h = block.attention_norm(x + 2.0 * block.attention(x, context))
    expected = block.feed_forward_norm(h + 2.0 * block.feed_forward(h))
    torch.testing.assert_close(block(x, torch.tensor(2.0), context), expected)


def test_norms_and_biases_are_as_published() -> None:
    stack = PostLN(layers=1, width=32, heads=4).build(VOCABULARY, 16, causal=False, attention="plain")
    norms = [module for module in stack.modules() if isinstance(module, torch.nn.LayerNorm)]
    assert len(norms) == 3
    assert all(norm.eps == EPS and norm.bias is not None for norm in norms)
    assert all(module.bias is not None for module in stack.modules() if isinstance(module, torch.nn.Linear))
