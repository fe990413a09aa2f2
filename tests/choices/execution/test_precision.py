"""Precisions: where each exists, and what is said where it does not."""

from __future__ import annotations

import importlib.util
from typing import get_args

import pytest
import torch
from torch import nn

from workbench.base.errors import RecipeError
from workbench.choices.execution import precision
from workbench.choices.execution.native import Native
from workbench.choices.execution.precision import (
    DTYPES,
    check_capability,
    emulated,
    in_fp8,
    refusal,
    set_float32_products,
)
from workbench.recipes.recipe import Recipe

GPU = torch.device("cuda")


def test_the_knob_offers_every_precision() -> None:
    assert get_args(Native.model_fields["precision"].annotation) == tuple(DTYPES)


def test_what_both_devices_have_is_never_refused() -> None:
    assert [refusal(name, device) for name in ("fp32", "bf16") for device in ("cpu", "cuda")] == [""] * 4
    assert refusal("tf32", "cuda") == refusal("fp16", "cuda") == ""


@pytest.mark.skipif(importlib.util.find_spec("torchao") is not None, reason="torchao is installed")
def test_fp8_names_the_package_that_it_lacks() -> None:
    assert refusal("fp8", "cuda").startswith("fp8 needs the package torchao, which is not installed; pip install")


@pytest.mark.parametrize(
    ("name", "capability", "way_out"),
    [("tf32", (7, 5), "use fp32"), ("fp8", (8, 0), "use bf16"), ("fp8", (7, 0), "use fp32")],
)
def test_an_older_gpu_is_named(
    name: str, capability: tuple[int, int], way_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "T4")
    with pytest.raises(RecipeError, match=rf"{name} needs compute capability .*T4 has \d\.\d; {way_out}"):
        check_capability(name, GPU)
    check_capability("bf16", GPU)
    check_capability(name, torch.device("cpu"))


def test_float32_of_a_cpu_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(torch, "set_float32_matmul_precision", asked.append)
    for name in ("tf32", "fp32", "bf16"):
        set_float32_products(name, torch.device("cpu"))
        set_float32_products(name, GPU)
    assert asked == ["high", "highest", "highest"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_tf32_rounds_products_of_float32() -> None:
    a, b = (torch.randn(256, 256, device=GPU) for _ in range(2))
    products = {}
    try:
        for name in ("fp32", "tf32"):
            set_float32_products(name, GPU)
            products[name] = (a @ b).double()
    finally:
        set_float32_products("fp32", GPU)
    exact = a.double() @ b.double()
    errors = {name: float((product - exact).abs().max()) for name, product in products.items()}
    assert errors["fp32"] < 1e-3 < errors["tf32"] < 0.5


@pytest.mark.gpu
@pytest.mark.skipif(
    not torch.cuda.is_available() or importlib.util.find_spec("torchao") is None, reason="needs CUDA and torchao"
)
def test_blocks_in_fp8_keep_the_names_of_their_weights() -> None:
    blocks = nn.ModuleList([nn.Sequential(nn.Linear(32, 64), nn.Linear(64, 24))]).to(GPU, torch.bfloat16)
    names = list(blocks.state_dict())
    in_fp8(blocks)
    assert list(blocks.state_dict()) == names
    assert type(blocks[0][0]) is not nn.Linear
    assert type(blocks[0][1]) is nn.Linear
    assert precision.DTYPES["fp8"] is torch.bfloat16


@pytest.mark.parametrize(
    ("units", "name", "device", "slow"),
    [
        ("AVX2", "bf16", "cpu", True), ("DEFAULT", "bf16", "cpu", True), ("AVX512", "bf16", "cpu", False),
        ("AVX2", "fp32", "cpu", False), ("AVX2", "bf16", "cuda", False),
    ],
)  # fmt: skip
def test_emulated_products_are_warned_of(
    units: str, name: str, device: str, slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: units)
    assert ("set it to 'fp32', or execution to 'auto'" in emulated(name, device)) is slow


def test_a_run_and_a_forecast_say_that_products_are_emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    engine = Recipe(execution={"kind": "native", "device": "cpu"}).engine()
    assert "several times slower than fp32" in engine.findings["warning"]
    assert engine.findings["warning"] in engine.assumptions()
    assert Recipe(execution={"kind": "native", "device": "cpu", "precision": "fp32"}).engine().findings == {}
