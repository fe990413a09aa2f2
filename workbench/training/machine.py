"""The machine of a run: packages, revision, device, and the speed of a plain matrix product."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

import torch

from workbench.base.cache_folder import cache_folder
from workbench.choices.execution.engine import Engine
from workbench.choices.execution.hardware import Mode
from workbench.ops.remembered import FOLDER, Benchmark, Contradiction, device_name, recheck, subject_of
from workbench.ops.timing import Sample, timed
from workbench.training.measurements import forget_peak

PEAK_FLOPS: dict[str, dict[str, float]] = {
    # Dense rates of the vendors' data sheets (no sparsity), FLOP/s; fp32 without TF32, fp8 with
    # float32 sums.
    "H200": {"bf16": 989e12, "fp16": 989e12, "fp32": 67e12, "tf32": 495e12, "fp8": 1979e12},
    "H100 PCIe": {"bf16": 756e12, "fp16": 756e12, "fp32": 51e12, "tf32": 378e12, "fp8": 1513e12},
    "H100": {"bf16": 989e12, "fp16": 989e12, "fp32": 67e12, "tf32": 495e12, "fp8": 1979e12},
    "A100": {"bf16": 312e12, "fp16": 312e12, "fp32": 19.5e12, "tf32": 156e12},
    "L40S": {"bf16": 362e12, "fp16": 362e12, "fp32": 91.6e12, "tf32": 183e12, "fp8": 733e12},
    "L4": {"bf16": 121e12, "fp16": 121e12, "fp32": 30.3e12, "tf32": 60e12, "fp8": 242e12},
    "RTX 4090": {"bf16": 165e12, "fp16": 165e12, "fp32": 82.6e12, "tf32": 82.6e12, "fp8": 330e12},
    "RTX 3090": {"bf16": 71e12, "fp16": 71e12, "fp32": 35.6e12, "tf32": 35.6e12},
    "V100-PCIE": {"fp16": 112e12, "fp32": 14e12},
    "V100": {"fp16": 125e12, "fp32": 15.7e12},
    "T4": {"fp16": 65e12, "fp32": 8.1e12},
}
"""Peak rate by whole words of the device's name (the first that fits) and precision."""
_OTHER_CHIP = re.compile(r"\b(?:NVL|Ti|D|Laptop|Max-Q|MIG)\b")
"""In the name of what is sold like one of them, or of a part of one, and has another rate."""

PACKAGES = ("torch", "numpy", "pydantic", "tokenizers", "safetensors", "transformers")
SETTLED_STEPS = 10
"""Steps of a run after which :func:`contradictions` are looked for."""
PRODUCT_SIDE = {"cpu": 1024, "cuda": 8192}
"""Large enough that launching and reading memory do not count, small enough for milliseconds."""


def peak_flops(mode: Mode) -> float | None:
    """Return the data sheet's rate in FLOP/s, None for a device that is not in the table."""
    if mode.device != "cuda":
        return None
    name = torch.cuda.get_device_name()
    # Whole words: an L40 is no L4, a T400 no T4, and a wrong peak makes a wrong MFU that looks right.
    found = (rates for part, rates in PEAK_FLOPS.items() if re.search(rf"\b{part}\b", name))
    return None if _OTHER_CHIP.search(name) else next(found, {}).get(mode.precision)


def gemm_flops(mode: Mode) -> float:
    """Return measured rate of a large matrix product here, FLOP/s; measured once per machine and remembered."""
    (seconds,) = product_benchmark(mode).seconds(cache_folder() / FOLDER).values()
    return 2.0 * PRODUCT_SIDE[mode.device] ** 3 / seconds


def product_benchmark(mode: Mode) -> Benchmark:
    """Return a product of two square matrices, measured in a process that is in this mode."""
    device, side = torch.device(mode.device), PRODUCT_SIDE[mode.device]
    subject = subject_of(device, mode.threads, precision=mode.precision, side=side)

    def samples() -> dict[str, Sample]:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            a, b = (torch.randn(side, side, device=device).to(mode.dtype) for _ in range(2))
        return {"product": timed(lambda: torch.mm(a, b), device)}

    return Benchmark("product", subject, ("product",), samples)


def contradictions(engine: Engine) -> list[Contradiction]:
    """Put to the test what a run of this engine relies on; what a few rounds contradict is measured again.

    Why not by the run's own speed: it shows nothing of the implementation that the run does not use, and the wrong
    reading is most often that one's. A run's steps are another moment than its start, and that is what counts.
    """
    found = []
    for benchmark in (product_benchmark(engine.mode), *engine.benchmarks()):
        # A check must never end a run: a full device has no room for its tensors.
        with contextlib.suppress(RuntimeError, MemoryError):
            found.append(recheck(benchmark, cache_folder() / FOLDER))
    forget_peak(engine.device)
    return [each for each in found if each is not None]


def environment(engine: Engine) -> dict[str, Any]:
    """Return the part of ``environment.json`` that the machine, the installation and the engine decide."""
    import os

    peak = peak_flops(engine.mode)
    return {
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "git": revision(),
        "host": platform.node(),
        "device": device_name(engine.device),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "processes": engine.ranks.size,
        "gemm_flops": gemm_flops(engine.mode),
        "peak_flops": peak,
        "mfu_is_share_of": "the data sheet's peak" if peak else "the matrix product rate measured here",
        **engine.described(),
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache
def revision() -> str | None:
    """Commit of the checkout this package is run from, with ``+changes`` when files differ; None when installed.

    As it is when first asked: what a process has loaded stays.
    """
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
