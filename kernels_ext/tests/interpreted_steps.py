"""The Triton kernels under Triton's interpreter, on a CPU; run by test_cuda.py with TRITON_INTERPRET=1."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from workbench_kernels.layerwise import cuda, reference

SETTINGS: dict[str, Any] = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-6}
SHAPES = ([33, 17], [1], [18011], [3, 5, 7], [], [0], [6])
NAN = float("nan")


def tensors(seed: int, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Random ones, the last of them zeros."""
    generator = torch.Generator().manual_seed(seed)
    made = [torch.randn(shape, generator=generator).to(dtype) for shape in SHAPES]
    return [*made[:-1], 0 * made[-1]]


def walk(steps: int, dtype: torch.dtype, lr: float, scale: float, **settings: Any) -> list[torch.Tensor]:
    """Kernel and reference side by side; returns what the kernel has changed."""
    weights = tensors(0)
    state = [[torch.zeros_like(x) for x in weights], [torch.zeros_like(x) for x in weights]]
    ratios, counts = [torch.full((), NAN) for _ in weights], [torch.zeros(()) for _ in weights]
    copies = [torch.full(x.shape, NAN, dtype=torch.bfloat16) for x in weights] if dtype == torch.bfloat16 else []
    slow, slow_ratios = [x.double() for x in weights], [torch.ones((), dtype=torch.float64) for _ in weights]
    slow_state = [[x.double() for x in moments] for moments in state]
    bounds = {"lowest": 0.0, "highest": float("inf"), "bias_correction": True, "adapts": True} | settings
    for step in range(steps):
        for count in counts:
            count += 1
        grads = tensors(100 + step, dtype)
        numbers = (torch.tensor(lr), torch.tensor(scale, dtype=torch.float64))
        cuda.step(weights, grads, *state, ratios, copies, counts, *numbers, **SETTINGS, **bounds)
        reference.layerwise_step(
            slow, grads, *slow_state, slow_ratios, counts, lr=lr, betas=(0.9, 0.999), eps=1e-6, grad_scale=scale,
            ratio_bounds=(bounds["lowest"], bounds["highest"]),
            **{name: value for name, value in bounds.items() if name not in ("lowest", "highest")},
        )  # fmt: skip
    for ours, theirs in zip((*weights, *state[0], *state[1]), (*slow, *slow_state[0], *slow_state[1]), strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=2e-5, atol=2e-6)
    for ours, theirs, weight in zip(ratios, slow_ratios, weights, strict=True):
        if weight.numel():
            torch.testing.assert_close(ours.double(), theirs, rtol=2e-5, atol=0.0)
    for copied, weight in zip(copies, weights, strict=False):
        # The interpreter cuts digits off where a GPU rounds to nearest.
        torch.testing.assert_close(copied.float(), weight, rtol=2**-7, atol=0.0)
    return [*weights, *state[0], *state[1]]


def main() -> None:
    """Three steps of both methods, the settings that differ, and the same bits twice."""
    # Whole tensors at a time: the interpreter pays for every operation, not for elements.
    cuda.CHUNK, cuda.BLOCK = 8192, 4096
    for normalised, decay in itertools.product((True, False), (0.0, 0.01)):
        walk(3, torch.float32, 0.01, 1.0, normalised=normalised, weight_decay=decay)
    common: dict[str, Any] = {"normalised": True, "weight_decay": 0.01}
    once, twice = (walk(2, torch.bfloat16, 0.02, 0.5, **common) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(once, twice, strict=True))
    lamb: dict[str, Any] = {"normalised": False, "weight_decay": 0.01}
    walk(2, torch.float32, 0.01, 1e-3, **lamb, lowest=0.01, highest=0.3, bias_correction=False)
    walk(2, torch.float32, 0.01, 1.0, **lamb, adapts=False)
    print("equal")


if __name__ == "__main__":
    main()
