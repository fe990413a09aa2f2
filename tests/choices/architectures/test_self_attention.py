from __future__ import annotations

import torch

from workbench.choices.architectures.self_attention import BlockContext, SelfAttention
from workbench.ops.attention import document_bias


def test_against_one_head_at_a_time() -> None:
    layer, x = SelfAttention(12, 3, True, "plain"), torch.randn(2, 5, 12)
    documents = torch.tensor([[0, 0, 0, 1, 1], [0, 1, 1, 1, 1]])
    context = BlockContext(document_bias(documents, False, torch.float32))
    mixed = torch.zeros(2, 5, 12)
    q, k, v = layer.qkv(x).split(12, -1)
    for row in range(2):
        for head in range(3):
            part = slice(4 * head, 4 * head + 4)
            for t in range(5):
                seen = (documents[row] == documents[row, t]).nonzero()[:, 0]
                weights = (k[row, seen, part] @ q[row, t, part] / 2).softmax(0)
                mixed[row, t, part] = weights @ v[row, seen, part]
    torch.testing.assert_close(layer(x, context), layer.out(mixed), rtol=1e-4, atol=1e-5)
