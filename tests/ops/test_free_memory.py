"""What a process may still take of a GPU: what nobody holds, and what torch's allocator holds for nobody."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from workbench.ops import free_memory
from workbench.ops.free_memory import free_bytes

GPU = torch.device("cuda")


def test_memory_that_the_allocator_holds_idle_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (700, 1000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 250)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 50)
    assert free_bytes(GPU) == 900


@pytest.mark.parametrize(
    ("limit", "use", "parts"),
    [
        ("memory.max", "memory.current", "anon 500\ninactive_file 300\n"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "inactive_file 5\ntotal_inactive_file 300\n"),
    ],
    ids=["version 2", "version 1"],
)
def test_what_files_left_in_the_memory_of_a_container_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, use: str, parts: str
) -> None:
    monkeypatch.setattr(free_memory, "CONTROL_GROUP", tmp_path)
    for name, text in ((limit, "1000\n"), (use, "900\n"), (f"{Path(limit).parent}/memory.stat", parts)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert free_bytes(torch.device("cpu")) == 400


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_tensor_that_is_gone_leaves_a_gpu_as_free_as_before() -> None:
    before = free_bytes(GPU)
    tensor = torch.empty(1 << 30, dtype=torch.uint8, device=GPU)
    assert free_bytes(GPU) < before - (1 << 29)
    del tensor
    # The driver still counts it as taken.
    assert free_bytes(GPU) > before - (1 << 28)
