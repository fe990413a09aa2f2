"""What a run says about the machine: rates that are measured once, peaks only of devices that are known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from workbench.training import machine

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("name", "precision", "peak"),
    [
        ("NVIDIA H200", torch.bfloat16, 989e12),
        ("NVIDIA H100 80GB HBM3", torch.bfloat16, 989e12),
        ("NVIDIA H100 PCIe", torch.bfloat16, 756e12),
        ("NVIDIA A100-SXM4-80GB", torch.float32, 19.5e12),
        ("NVIDIA L4", torch.bfloat16, 121e12),
        ("NVIDIA L40S", torch.bfloat16, 362e12),
        ("NVIDIA GeForce RTX 4090", torch.bfloat16, 165e12),
        ("Tesla T4", torch.bfloat16, None),
        ("NVIDIA L40", torch.bfloat16, None),
        ("NVIDIA T400 4GB", torch.float16, None),
    ],
)
def test_a_peak_is_that_of_the_device_or_none(
    name: str, precision: torch.dtype, peak: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device=None: name)
    assert machine.peak_flops(torch.device("cuda"), precision) == peak


def test_a_processor_has_no_data_sheet() -> None:
    assert machine.peak_flops(CPU, torch.float32) is None


def test_the_rate_is_measured_once_and_again_when_it_cannot_be_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(machine, "MEASURE_SECONDS", 0.0)
    rate = machine.gemm_flops(CPU, torch.float32)
    # Any machine that can run this is between a pocket calculator and a cluster.
    assert 1e8 < rate < 1e16
    assert machine.gemm_flops(CPU, torch.float32) == rate
    (file,) = (tmp_path / "machine").iterdir()
    record = json.loads(file.read_text())
    for damage in ('{"half', json.dumps({**record, "key": ["another machine"]}), json.dumps({**record, "flops": 0})):
        file.write_text(damage)
        machine.gemm_flops(CPU, torch.float32)
        assert json.loads(file.read_text())["key"] == record["key"]
    machine.gemm_flops(CPU, torch.bfloat16)
    assert len(list((tmp_path / "machine").iterdir())) == 2, "each precision has a rate of its own"


def test_the_environment_can_be_written_and_says_what_mfu_means(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "MEASURE_SECONDS", 0.0)
    said = machine.environment(CPU, torch.float32)
    assert json.loads(json.dumps(said)) == said
    assert said["packages"]["torch"] == torch.__version__
    assert said["peak_flops"] is None
    assert said["mfu_is_share_of"] == "the matrix product rate measured here"
