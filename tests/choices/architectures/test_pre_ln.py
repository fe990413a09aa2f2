from __future__ import annotations

import pytest
import torch

from tests.choices.architectures.packing import VOCABULARY, documents, pack
from workbench.choices.architectures.pre_ln import PreLN


def test_no_biases_and_projections_into_the_stream_start_small() -> None:
    torch.manual_seed(0)
    stack = PreLN(layers=8, width=64, heads=4).build(VOCABULARY, 32, causal=False, attention="plain")
    assert not any(name.endswith("bias") for name, _ in stack.named_parameters())
    assert stack.blocks[0].attention.qkv.weight.std().item() == pytest.approx(0.02, rel=0.05)
    for weight in (stack.blocks[0].attention.out.weight, stack.blocks[7].feed_forward.down.weight):
        assert weight.std().item() == pytest.approx(0.02 / 4, rel=0.05)


def test_the_paper_s_formula() -> None:
    """y = h + s FFN(norm(h)), h = x + s Attn(norm(x)), spelled out with the block's own parts."""
    torch.manual_seed(0)
    stack = PreLN(layers=1, width=32, heads=4, norm="layer_norm", ffn="geglu").build(
        VOCABULARY, 16, causal=False, attention="plain"
    )
    batch = pack(documents(9, 7))
    block, context, scale = stack.blocks[0], stack.context(batch.tokens_BT, batch), torch.tensor(1.25)
    x = stack.embed(batch.tokens_BT, batch) * 30
    h = x + 1.25 * block.attention(block.attention_norm(x), context)
    expected = h + 1.25 * block.feed_forward(block.feed_forward_norm(h))
    torch.testing.assert_close(block(x, scale, context), expected)
