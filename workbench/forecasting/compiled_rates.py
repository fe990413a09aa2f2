"""What compiled code costs beside its matrix products, from three kernels of the kinds that blocks are made of.

A whole block would say more, and takes a minute to compile: some thirty kernels of one or two seconds each.
"""

from __future__ import annotations

import random
from functools import partial

import torch
from torch import Tensor

from workbench.forecasting.rates import FusedRates
from workbench.forecasting.stopwatch import fitted_line
from workbench.ops.timing import Sample, measure, processor_seconds, timed

# Shape legend: N rows, D columns.

ROWS, COLUMNS = 2048, 256
FEW_ROWS = 16
"""Rows at which a kernel takes no time, so that what is left is the price of entering a graph."""


def compiled_rates(device: torch.device, dtype: torch.dtype) -> FusedRates:
    """Compile a few functions and time them."""
    import torch._inductor.config as inductor

    # Constants that no earlier calibration had: a kernel found in the cache would say that compiling takes no time.
    scale = random.uniform(0.1, 0.2)

    def activation(x_ND: Tensor) -> Tensor:
        return torch.relu(x_ND * scale).square()

    def norm(x_ND: Tensor) -> Tensor:
        wide = x_ND.float()
        return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + scale)).to(x_ND.dtype)

    def attention(x_ND: Tensor) -> Tensor:
        return torch.softmax(x_ND.float() * scale, -1).to(x_ND.dtype)

    size = 2 * dtype.itemsize * ROWS * COLUMNS
    took, sizes, samples = list[float](), list[tuple[float, ...]](), dict[str, Sample]()
    # In this process: a pool of compilers takes longer to start than three kernels to compile.
    with inductor.patch(compile_threads=1), torch.no_grad():
        for work in (activation, norm, attention):
            compiled = torch.compile(work)
            few, many = (torch.randn(rows, COLUMNS, device=device).to(dtype) for rows in (FEW_ROWS, ROWS))
            # One kernel for both. Not dynamic=True, which makes an argument of the constant, too.
            for x_ND in (few, many):
                torch._dynamo.mark_dynamic(x_ND, 0)
            # Once: a second time it would be found in the cache.
            began = processor_seconds()
            compiled(many)
            took.append(processor_seconds() - began)
            costly = float(many.numel()) if work is attention else 0.0
            for x_ND, share in ((few, FEW_ROWS / ROWS), (many, 1.0)):
                sizes.append((1.0, share * size, share * costly))
                samples[f"{work.__name__} of {len(x_ND)} rows"] = timed(partial(compiled, x_ND), device)
        found = measure(samples)
    seconds = [timing.seconds for timing in found.values()]
    graph, byte, number = fitted_line(sizes, seconds)
    kernel = min(took[1:])
    return FusedRates(
        graph=graph, byte=byte, costly=number, kernel_seconds=kernel, start_seconds=max(0.0, took[0] - kernel)
    )
