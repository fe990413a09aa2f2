"""What a process may still take of a GPU: what nobody holds, and what torch's allocator holds for nobody."""

from __future__ import annotations

import pytest
import torch

from workbench.ops.free_memory import free_bytes

GPU = torch.device("cuda")


def test_memory_that_the_allocator_holds_idle_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (700, 1000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 250)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 50)
    assert free_bytes(GPU) == 900


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_tensor_that_is_gone_leaves_a_gpu_as_free_as_before() -> None:
    before = free_bytes(GPU)
    tensor = torch.empty(1 << 30, dtype=torch.uint8, device=GPU)
    assert free_bytes(GPU) < before - (1 << 29)
    del tensor
    # The driver still counts it as taken.
    assert free_bytes(GPU) > before - (1 << 28)
