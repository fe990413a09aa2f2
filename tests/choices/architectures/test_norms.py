from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from workbench.choices.architectures.norms import LayerNorm, RMSNorm


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rms_norm_against_float64(dtype: torch.dtype) -> None:
    norm, x = RMSNorm(7), (torch.randn(3, 5, 7) * 4).to(dtype)
    torch.nn.init.normal_(norm.weight)
    exact = x.double() / (x.double().square().mean(-1, keepdim=True) + 1e-6).sqrt() * norm.weight.double()
    torch.testing.assert_close(norm(x).double(), exact, rtol=1e-5, atol=1e-6)


def test_layer_norm_has_no_bias() -> None:
    norm, x = LayerNorm(7), torch.randn(3, 7)
    torch.testing.assert_close(norm(x), F.layer_norm(x, (7,)))
    assert [name for name, _ in norm.named_parameters()] == ["weight"]
