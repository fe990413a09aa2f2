"""What the run ran on: packages, revision, device, and how fast a plain matrix product is here."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import torch

from workbench.choices.data.data import cache_folder
from workbench.clocks import thread_clock
from workbench.runs.folder import read_json, write_json

PEAK_FLOPS: dict[str, dict[torch.dtype, float]] = {
    # Dense rates of the vendors' data sheets (no sparsity), FLOP/s; fp32 without TF32.
    "H200": {torch.bfloat16: 989e12, torch.float16: 989e12, torch.float32: 67e12},
    "H100 PCIe": {torch.bfloat16: 756e12, torch.float16: 756e12, torch.float32: 51e12},
    "H100": {torch.bfloat16: 989e12, torch.float16: 989e12, torch.float32: 67e12},
    "A100": {torch.bfloat16: 312e12, torch.float16: 312e12, torch.float32: 19.5e12},
    "L40S": {torch.bfloat16: 362e12, torch.float16: 362e12, torch.float32: 91.6e12},
    "L4": {torch.bfloat16: 121e12, torch.float16: 121e12, torch.float32: 30.3e12},
    "RTX 4090": {torch.bfloat16: 165e12, torch.float16: 165e12, torch.float32: 82.6e12},
    "RTX 3090": {torch.bfloat16: 71e12, torch.float16: 71e12, torch.float32: 35.6e12},
    "V100": {torch.float16: 125e12, torch.float32: 15.7e12},
    "T4": {torch.float16: 65e12, torch.float32: 8.1e12},
}
"""Peak rate by whole words of the device's name (the first that fits) and precision."""

PACKAGES = ("torch", "numpy", "pydantic", "tokenizers", "safetensors", "transformers")
MEASURE_SECONDS = 0.4
VERSION = 2
"""Of the measurement: what an earlier one has remembered is measured again."""


def device_words(device: torch.device) -> str:
    """The device in words: a GPU's own name, or the processor's."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def peak_flops(device: torch.device, precision: torch.dtype) -> float | None:
    """The data sheet's rate in FLOP/s, None for a device that is not in the table."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    # Whole words: an L40 is no L4, a T400 no T4, and a wrong peak makes a wrong MFU that looks right.
    found = (rates for part, rates in PEAK_FLOPS.items() if re.search(rf"\b{part}\b", name))
    return next(found, {}).get(precision)


def gemm_flops(device: torch.device, precision: torch.dtype) -> float:
    """Measured rate of a large matrix product here, FLOP/s; measured once per machine and remembered.

    The key holds device, precision, threads and torch's version, and how it is measured: whatever changes the answer.
    """
    key = [VERSION, device_words(device), str(precision), torch.get_num_threads(), torch.__version__]
    name = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]
    file = cache_folder() / "machine" / f"{name}.json"
    known = read_json(file, {})
    if isinstance(known, dict) and known.get("key") == key and float(known.get("flops", 0)) > 0:
        return float(known["flops"])
    flops = _measure(device, precision)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, {"key": key, "flops": flops}, durable=False)
    return flops


def environment(device: torch.device, precision: torch.dtype) -> dict[str, Any]:
    """The part of ``environment.json`` that the machine and the installation decide."""
    import os

    peak = peak_flops(device, precision)
    return {
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "git": _revision(),
        "host": platform.node(),
        "device": device_words(device),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gemm_flops": gemm_flops(device, precision),
        "peak_flops": peak,
        "mfu_is_share_of": "the data sheet's peak" if peak else "the matrix product rate measured here",
    }


def _measure(device: torch.device, precision: torch.dtype) -> float:
    """Best of the repetitions that fit into :data:`MEASURE_SECONDS`: the others were disturbed."""
    # Large enough that launching and reading memory do not count, small enough for milliseconds.
    size = 8192 if device.type == "cuda" else 1024
    a = torch.randn(size, size, device=device).to(precision)
    b = torch.randn(size, size, device=device).to(precision)
    began, best = time.perf_counter(), float("inf")
    repetitions = 0
    while repetitions < 3 or time.perf_counter() - began < MEASURE_SECONDS:
        best = min(best, _once(a, b))
        repetitions += 1
    return 2.0 * size**3 / best


def _once(a: torch.Tensor, b: torch.Tensor) -> float:
    if a.device.type == "cuda":
        torch.cuda.synchronize(a.device)
    # A product that is timed beside another run must not make all later runs look more than perfectly efficient.
    clock = thread_clock(a.device)
    began = clock()
    torch.mm(a, b)
    if a.device.type == "cuda":
        torch.cuda.synchronize(a.device)
    return clock() - began


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _revision() -> str | None:
    """Commit of the checkout this package is run from, with ``+changes`` when files differ; None when installed."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    # No tag names: a commit's digits mean the same in every clone.
    ask = ["git", "-C", str(root), "describe", "--always", "--abbrev=12", "--dirty=+changes", "--exclude=*"]
    try:
        done = subprocess.run(ask, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
