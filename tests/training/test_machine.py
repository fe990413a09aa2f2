"""What a run says about the machine: rates that are measured once, peaks only of devices that are known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from workbench.choices.execution import Mode
from workbench.ops import remembered
from workbench.ops.remembered import FOLDER
from workbench.ops.timing import measure
from workbench.recipes.recipe import Recipe
from workbench.training import machine

FP32 = Mode("cpu", 1, "fp32", compiled=False)


@pytest.mark.parametrize(
    ("name", "precision", "peak"),
    [
        ("NVIDIA H200", "bf16", 989e12),
        ("NVIDIA H100 80GB HBM3", "bf16", 989e12),
        ("NVIDIA H100 PCIe", "bf16", 756e12),
        ("NVIDIA A100-SXM4-80GB", "fp32", 19.5e12),
        ("NVIDIA L4", "bf16", 121e12),
        ("NVIDIA L40S", "bf16", 362e12),
        ("NVIDIA GeForce RTX 4090", "bf16", 165e12),
        ("NVIDIA H200 NVL", "bf16", None),
        ("Tesla V100-PCIE-32GB", "fp16", 112e12),
        ("Tesla V100-SXM2-32GB", "fp16", 125e12),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "bf16", None),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "bf16", None),
        ("NVIDIA GeForce RTX 4090 D", "bf16", None),
        ("NVIDIA GeForce RTX 3090 Ti", "bf16", None),
        ("Tesla T4", "bf16", None),
        ("NVIDIA L40", "bf16", None),
        ("NVIDIA T400 4GB", "fp16", None),
    ],
)
def test_a_peak_is_that_of_the_device_or_none(
    name: str, precision: str, peak: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: name)
    assert machine.peak_flops(Mode("cuda", 1, precision, compiled=True)) == peak


def test_a_processor_has_no_data_sheet() -> None:
    assert machine.peak_flops(FP32) is None


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = {"rounds": 2, "least_seconds": 0.0, "limit_seconds": 0.0}
    monkeypatch.setattr(remembered, "measure", lambda samples, **rest: measure(samples, **{**rest, **quick}))


def test_the_rate_is_measured_once_and_each_precision_has_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    rate = machine.gemm_flops(FP32)
    # Any machine that can run this is between a pocket calculator and a cluster.
    assert 1e8 < rate < 1e16
    assert machine.gemm_flops(FP32) == rate
    assert machine.product_benchmark(FP32).recalled(tmp_path / FOLDER)
    machine.gemm_flops(FP32._replace(precision="bf16"))
    assert len(list((tmp_path / FOLDER).iterdir())) == 2


@pytest.mark.process
def test_the_environment_can_be_written_and_says_what_mfu_means(tiny: Recipe) -> None:
    said = machine.environment(tiny.engine())
    assert json.loads(json.dumps(said)) == said
    assert said["packages"]["torch"] == torch.__version__
    assert said["peak_flops"] is None
    assert said["mfu_is_share_of"] == "the matrix product rate measured here"


def test_only_what_a_run_relies_on_is_put_to_the_test(
    tiny: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    checked: list[str] = []
    monkeypatch.setattr(machine, "recheck", lambda benchmark, folder: checked.append(benchmark.name))
    assert machine.contradictions(tiny.engine()) == []
    machine.contradictions(tiny.with_(execution={"attention": "auto"}).engine())
    assert checked == ["product", "product", "attention"]


def test_a_check_that_finds_no_memory_ends_no_run(tiny: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(machine, "recheck", full)
    assert machine.contradictions(tiny.engine()) == []
