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


@pytest.mark.parametrize("group", ["", "job/step"], ids=["a container", "a job"])
@pytest.mark.parametrize(
    ("kind", "limit", "use", "parts"),
    [
        ("", "memory.max", "memory.current", "anon 500\ninactive_file 300\n"),
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "inactive_file 5\ntotal_inactive_file 300\n"),
    ],
    ids=["version 2", "version 1"],
)
def test_a_control_group_leaves_its_limit_and_what_files_take_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, kind: str, limit: str, use: str, parts: str
) -> None:
    monkeypatch.setattr(free_memory, "CONTROL_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(free_memory, "OWN_GROUPS", tmp_path / "own")
    (tmp_path / "own").write_text(f"3:cpu,cpuacct:/elsewhere\n4:{kind}:/{group}\n")
    # A step has no limit of its own: that of the job around it counts.
    folder = tmp_path / "groups" / kind / group.partition("/")[0]
    folder.mkdir(parents=True)
    for name, text in ((limit, "1000\n"), (use, "900\n"), ("memory.stat", parts)):
        (folder / name).write_text(text)
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
