"""The layerwise adaptive step (LANS, LAMB) of many tensors: ``torch.ops.workbench_kernels.layerwise_step``."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

# Defined with a schema rather than with custom_op, whose checks in Python took half a millisecond a step for thirty
# tensors; what they do for autograd is done in `layerwise_step`. The CPU's kernels are registered by the library.
torch.library.define(
    "workbench_kernels::layerwise_step",
    "(Tensor(a!)[] weights, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs, "
    "Tensor(d!)[] trust_ratios, Tensor(e!)[] copies, Tensor[] steps, Tensor lr, Tensor grad_scale, "
    "float beta1, float beta2, float eps, float weight_decay, float lowest, float highest, "
    "bool bias_correction, bool adapts, bool normalised) -> ()",
)
torch.library.define("workbench_kernels::norm", "(Tensor[] tensors, Tensor(a!) out) -> ()")


@torch.library.register_fake("workbench_kernels::layerwise_step")
@torch.library.register_fake("workbench_kernels::norm")
def _nothing_returned(*arguments: object) -> None:
    """What changes is named in the schema."""


@torch.library.impl("workbench_kernels::layerwise_step", "CUDA")
def _step_on_cuda(*arguments: Any) -> None:
    # Not before it is needed: Triton is no dependency on a CPU.
    from workbench_kernels.layerwise.cuda import step

    step(*arguments)


@torch.library.impl("workbench_kernels::norm", "CUDA")
def _norm_on_cuda(tensors: list[Tensor], out: Tensor) -> None:
    norms = torch.stack(torch._foreach_norm(tensors, 2, dtype=torch.float32))
    out.copy_(torch.linalg.vector_norm(norms, dtype=torch.float64))


def norm(tensors: list[Tensor]) -> Tensor:
    """Euclidean norm over all elements of all tensors, for a clipping factor; 0-d float64 on their device.

    Args:
        tensors: contiguous, any shapes, float32 or bfloat16, all on one device.

    Raises:
        NotImplementedError: no kernel for this device.
    """
    device = tensors[0].device
    _require(device)
    out = torch.empty((), dtype=torch.float64, device=device)
    torch.ops.workbench_kernels.norm.default(tensors, out)
    return out


def _require(device: torch.device) -> None:
    if reason := why_not(device.type):
        raise NotImplementedError(f"workbench_kernels: {reason}")


@functools.cache
def why_not(device_type: str) -> str | None:
    """None where the op runs on such a device (``cpu``, ``cuda``), else the reason why it does not, in words."""
    if device_type == "cuda":
        if not importlib.util.find_spec("triton"):
            return "triton is not installed"
        unproven = "the kernels for CUDA have not yet run on a GPU; WORKBENCH_KERNELS_CUDA=1 uses them all the same"
        return None if os.environ.get("WORKBENCH_KERNELS_CUDA") else unproven
    if device_type != "cpu":
        return f"there are kernels for cpu and cuda, not for {device_type}"
    library = Path(__file__).with_name("_cpu.so")
    try:
        torch.ops.load_library(library)
    except OSError as error:
        return f"{library.name} cannot be loaded, build it anew against torch {torch.__version__} ({error})"
    return None


def layerwise_step(
    weights: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    trust_ratios: list[Tensor],
    steps: list[Tensor],
    *,
    lr: float | Tensor,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float,
    normalised: bool,
    grad_scale: float | Tensor = 1.0,
    bias_correction: bool = True,
    adapts: bool = True,
    ratio_bounds: tuple[float, float | None] | None = None,
    copies: list[Tensor] | None = None,
) -> None:
    """One LANS (``normalised``) or LAMB step; the formula stands in ``reference.layerwise_step``.

    All tensors are contiguous and on one device, the lists run parallel. It repeats bit for bit, on a CPU with any
    number of threads. On CUDA nothing waits for the device, and with tensors there for every number the launches can be
    captured in a graph.

    Args:
        weights: float32, any shapes, changed in place: the parameters, or float32 masters of narrower ones.
        grads: of the weights' shapes, float32 or bfloat16.
        exp_avgs, exp_avg_sqs: moments, of the weights' shapes, float32, changed in place.
        trust_ratios: 0-d float32, take R(r).
        steps: 0-d float32, numbers of steps with this one counted in, at least 1; on the CPU or on the device.
        lr: learning rate, a number or a 0-d tensor.
        betas: decay rates of the moments.
        eps: > 0, added to the denominator, and to the gradient's norm where that is divided out.
        weight_decay: decoupled, not multiplied by lr.
        normalised: divide every gradient by its norm, and give it a step of its own: LANS; else LAMB.
        grad_scale: factor on all gradients, a number or a 0-d tensor: 1 / loss scale, or a clipping factor.
        bias_correction: divide the moments by 1 - beta^t.
        adapts: scale each tensor's step to its norm; else R = 1.
        ratio_bounds: least and greatest R; None for no bounds, or for no greatest.
        copies: of the weights' shapes, bfloat16, take the new weights rounded.

    Raises:
        RuntimeError: a tensor of another size, type, layout or device.
        NotImplementedError: no kernel for this device (:func:`why_not` says why).
    """
    if not weights:
        return
    device = weights[0].device
    _require(device)
    lowest, highest = ratio_bounds or (0.0, None)
    numbers = (
        value if isinstance(value, Tensor) else torch.full((), value, dtype=torch.float64, device=device)
        for value in (lr, grad_scale)
    )
    torch.ops.workbench_kernels.layerwise_step.default(
        weights, grads, exp_avgs, exp_avg_sqs, trust_ratios, copies or [], steps, *numbers, *betas, eps, weight_decay,
        lowest, float("inf") if highest is None else highest, bias_correction, adapts, normalised,
    )  # fmt: skip
    torch.autograd.graph.increment_version(itertools.chain(weights, exp_avgs, exp_avg_sqs, trust_ratios, copies or []))
