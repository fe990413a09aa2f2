"""Fused kernels of the package ``workbench-kernels``, used where it is installed and covers the device."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch


@functools.cache
def _found(device_type: str) -> tuple[Callable[..., None] | None, str]:
    try:
        import workbench_kernels
        from workbench_kernels.layerwise import layerwise_step, why_not
    except ImportError as error:
        # As for a missing package: a damaged one must not end a run that torch alone can train.
        return None, f"workbench-kernels is not installed ({error})"
    reason = why_not(device_type)
    return (layerwise_step, workbench_kernels.__version__) if reason is None else (None, reason)


def layerwise_step(device: torch.device) -> Callable[..., None] | None:
    """The fused LANS/LAMB step of many tensors of any shapes on ``device``; None where there is none."""
    return _found(device.type)[0]


def layerwise_path(device: torch.device) -> str:
    """What takes the LANS/LAMB step on ``device``, in words: the kernel and its version, or torch and why."""
    kernel, detail = _found(device.type)
    return f"fused kernel of workbench-kernels {detail}" if kernel else f"torch operations: {detail}"


def norm(tensors: list[torch.Tensor]) -> torch.Tensor:
    """Norm over all elements of contiguous tensors of any shapes, 0-d float64, where :func:`layerwise_step` is one."""
    from workbench_kernels.layerwise import norm

    result: torch.Tensor = norm(tensors)
    return result
