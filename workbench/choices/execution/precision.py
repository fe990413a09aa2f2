"""Precisions of matrix products: what each computes in, where it exists, and how it comes into force."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any, NamedTuple

import torch
from torch import nn

from workbench.base.errors import RecipeError

DTYPES = {
    "fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.bfloat16,
}  # fmt: skip
"""Dtype of products by precision: tf32 rounds float32 inside a GPU's matrix units, and fp8 what bf16 is."""


class GpuPrecision(NamedTuple):
    """A precision that only GPUs have.

    Attributes:
        capability: the least compute capability, (major, minor).
        reason: why a CPU has none.
        otherwise: precisions to use instead.
    """

    capability: tuple[int, int]
    reason: str
    otherwise: str


ON_GPU = {
    # Compute capabilities: CUDA C++ Programming Guide, "Arithmetic Instructions" and "Tensor cores".
    "tf32": GpuPrecision((8, 0), "it is a rounding inside a GPU's matrix units", "bf16 or fp32"),
    "fp16": GpuPrecision((7, 0), "few CPUs have units for it", "bf16 or fp32"),
    "fp8": GpuPrecision((8, 9), "only GPUs compute its products", "bf16"),
}


def refusal(precision: str, device: str) -> str:
    """Return why ``device`` (``cpu`` or ``cuda``) cannot have this precision, with the way out; or empty.

    What a GPU can do is not asked here, since asking makes a CUDA context: see :func:`check_capability`.
    """
    needs = ON_GPU.get(precision)
    if needs is None:
        return ""
    if device == "cpu":
        return f"{precision} needs a CUDA device ({needs.reason}); use {needs.otherwise} on a CPU"
    if precision == "fp8" and importlib.util.find_spec("torchao") is None:
        return f"fp8 needs the package torchao, which is not installed; pip install torchao, or use {needs.otherwise}"
    return ""


def emulated(precision: str, device: str) -> str:
    """Return why products of this precision are slow here, with the way out; empty if they are not.

    Of vector units, not of names: without AVX-512 a step of `fast` took 12 times as long in bf16 as in fp32 (LOG.md,
    2026-11-22).
    """
    if precision != "bf16" or device != "cpu" or torch.backends.cpu.get_cpu_capability() not in ("DEFAULT", "AVX2"):
        return ""
    return (
        "execution.precision 'bf16' is emulated on this processor, several times slower than fp32; set it to 'fp32', "
        "or execution to 'auto', which measures"
    )


def check_capability(precision: str, device: torch.device) -> None:
    """Check that the GPU at hand has this precision; for the process that trains on it.

    Raises:
        RecipeError: it has not.
    """
    if device.type != "cuda" or precision not in ON_GPU:
        return
    needs, there = ON_GPU[precision], torch.cuda.get_device_capability(device)
    if there < needs.capability:
        least, has = (".".join(map(str, each)) for each in (needs.capability, there))
        raise RecipeError(
            f"execution.precision: {precision} needs compute capability {least}, and "
            f"{torch.cuda.get_device_name(device)} has {has}; use {'fp32' if has < '8' else needs.otherwise}"
        )


def set_float32_products(precision: str, device: torch.device) -> None:
    """Let products of float32 be rounded to TF32, or not: a setting of the whole process, made whichever it is."""
    # On a CPU the same call would let oneDNN round to bf16, which nobody asked for.
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")


def in_fp8(blocks: nn.Module) -> None:
    """Let the products of ``blocks`` run in fp8 with scales per tensor; weights keep names and precision."""
    float8: Any = importlib.import_module("torchao.float8")
    # The units take multiples of 16; other products stay bf16.
    float8.convert_to_float8_training(
        blocks,
        module_filter_fn=lambda module, name: (
            isinstance(module, nn.Linear) and module.in_features % 16 == module.out_features % 16 == 0
        ),
    )
