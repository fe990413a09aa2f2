"""The layerwise step on CUDA, in Triton: five launches for any number of tensors; nothing waits for the device.

Tensors are cut into chunks; a table says which chunk is whose, another one holds the tensors' addresses as integers.
Chunks write partial sums, which a small launch adds up in a fixed order: no atomics, so a step repeats bit for bit.

Legend: T tensors, C chunks. Rows of ``addresses_6T``: weights, gradients, both moments, trust ratios, copies. Rows of
``numbers_7T``: k eps, k / (1 - beta1^t), k (with k = sqrt(1 - beta2^t)), the gradient's factor, and lose, of_m, of_g of
the step x - (lose x + (of_m m + of_g g) / (sqrt(v) + k eps)). Rows of ``sums_3C``: squares of x (of g, before), r, c.
"""

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl
from torch import Tensor

CHUNK = 16_384
"""Elements of a program: enough to outweigh looking up what it has to do."""
BLOCK = 1024
"""Elements that a program holds in registers at a time."""
SUMS = 128
"""Partial sums that are added up at a time."""


@triton.jit
def _pointer(addresses_6T, row: tl.constexpr, T, tensor):
    return tl.load(addresses_6T + row * T + tensor).to(tl.pointer_type(tl.float32))


@triton.jit
def _gradient(addresses_6T, T, tensor, at, inside, narrow: tl.constexpr):
    address = tl.load(addresses_6T + T + tensor)
    if narrow:
        g = tl.load(address.to(tl.pointer_type(tl.bfloat16)) + at, mask=inside, other=0.0)
    else:
        g = tl.load(address.to(tl.pointer_type(tl.float32)) + at, mask=inside, other=0.0)
    return g.to(tl.float32)


@triton.jit
def _total(sums_C, starts_T1, tensor, width: tl.constexpr):
    """Float64 sum of a tensor's partial sums, always in the same order."""
    end = tl.load(starts_T1 + tensor + 1)
    total = tl.zeros((width,), tl.float64)
    for begin in range(tl.load(starts_T1 + tensor), end, width):
        at = begin + tl.arange(0, width)
        total += tl.load(sums_C + at, mask=at < end, other=0.0).to(tl.float64)
    return tl.sum(total, 0)


@triton.jit
def sum_squares(
    addresses_6T, sizes_T, chunks_2C, sums_3C, T, C, narrow: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Squares of every chunk's gradients, added up; one program for each chunk."""
    program = tl.program_id(0)
    tensor, begin = tl.load(chunks_2C + program), tl.load(chunks_2C + C + program)
    size = tl.load(sizes_T + tensor)
    total = tl.zeros((BLOCK,), tl.float32)
    for offset in range(0, CHUNK, BLOCK):
        at = begin + offset + tl.arange(0, BLOCK)
        g = _gradient(addresses_6T, T, tensor, at, at < size, narrow)
        total += g * g
    tl.store(sums_3C + program, tl.sum(total, 0))


@triton.jit
def set_scale(starts_T1, sums_3C, numbers_7T, grad_scale, eps, T, SUMS: tl.constexpr):
    """The factor s / (s ||g|| + eps); one program for each tensor."""
    tensor = tl.program_id(0)
    scale = tl.load(grad_scale)
    norm = tl.sqrt(_total(sums_3C, starts_T1, tensor, SUMS))
    tl.store(numbers_7T + 3 * T + tensor, (scale / (scale * norm + eps)).to(tl.float32))


@triton.jit
def move_moments(
    addresses_6T, sizes_T, chunks_2C, sums_3C, numbers_7T, beta1, rest1, beta2, rest2, decay, T, C,
    narrow: tl.constexpr, normalised: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """New moments, and the sums of squares of x, r and c; one program for each chunk."""
    program = tl.program_id(0)
    tensor, begin = tl.load(chunks_2C + program), tl.load(chunks_2C + C + program)
    size = tl.load(sizes_T + tensor)
    x_at, m_at = _pointer(addresses_6T, 0, T, tensor), _pointer(addresses_6T, 2, T, tensor)
    v_at = _pointer(addresses_6T, 3, T, tensor)
    eps, momentum = tl.load(numbers_7T + tensor), tl.load(numbers_7T + T + tensor)
    gradient, scale = tl.load(numbers_7T + 2 * T + tensor), tl.load(numbers_7T + 3 * T + tensor)
    sum_x = tl.zeros((BLOCK,), tl.float32)
    sum_r = tl.zeros((BLOCK,), tl.float32)
    sum_c = tl.zeros((BLOCK,), tl.float32)
    for offset in range(0, CHUNK, BLOCK):
        at = begin + offset + tl.arange(0, BLOCK)
        inside = at < size
        x = tl.load(x_at + at, mask=inside, other=0.0)
        ghat = scale * _gradient(addresses_6T, T, tensor, at, inside, narrow)
        m = beta1 * tl.load(m_at + at, mask=inside, other=0.0) + rest1 * ghat
        v = beta2 * tl.load(v_at + at, mask=inside, other=0.0) + (rest2 * ghat) * ghat
        tl.store(m_at + at, m, mask=inside)
        tl.store(v_at + at, v, mask=inside)
        # Outside the tensor all are 0 / eps.
        inverse = 1.0 / (tl.sqrt(v) + eps)
        r = (momentum * m) * inverse + decay * x
        sum_x += x * x
        sum_r += r * r
        if normalised:
            c = (gradient * ghat) * inverse + decay * x
            sum_c += c * c
    tl.store(sums_3C + program, tl.sum(sum_x, 0))
    tl.store(sums_3C + C + program, tl.sum(sum_r, 0))
    tl.store(sums_3C + 2 * C + program, tl.sum(sum_c, 0))


@triton.jit
def _ratio(sum_x, sum_u, lowest, highest, adapts: tl.constexpr):
    if adapts:
        ratio = tl.minimum(tl.maximum(tl.sqrt(sum_x / tl.where(sum_u == 0, 1.0, sum_u)), lowest), highest)
        return tl.where((sum_x == 0) | (sum_u == 0), 1.0, ratio)
    return tl.where(sum_x == sum_x, 1.0, 1.0).to(tl.float64)


@triton.jit
def set_step(
    addresses_6T, starts_T1, sums_3C, numbers_7T, lr, share, decay, lowest, highest, T, C,
    adapts: tl.constexpr, normalised: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """Trust ratios, and from them the factors of the step; one program for each tensor."""
    tensor = tl.program_id(0)
    rate = tl.load(lr)
    sum_x = _total(sums_3C, starts_T1, tensor, SUMS)
    ratio_r = _ratio(sum_x, _total(sums_3C + C, starts_T1, tensor, SUMS), lowest, highest, adapts)
    step_r = rate * share * ratio_r
    step_c = step_r * 0.0
    if normalised:
        step_c = rate * (1 - share) * _ratio(
            sum_x, _total(sums_3C + 2 * C, starts_T1, tensor, SUMS), lowest, highest, adapts
        )  # fmt: skip
    momentum, gradient = tl.load(numbers_7T + T + tensor), tl.load(numbers_7T + 2 * T + tensor)
    scale = tl.load(numbers_7T + 3 * T + tensor)
    tl.store(numbers_7T + 4 * T + tensor, (decay * (step_r + step_c)).to(tl.float32))
    tl.store(numbers_7T + 5 * T + tensor, (step_r * momentum).to(tl.float32))
    tl.store(numbers_7T + 6 * T + tensor, (step_c * gradient * scale).to(tl.float32))
    tl.store(_pointer(addresses_6T, 4, T, tensor), ratio_r.to(tl.float32))


@triton.jit
def move_weights(
    addresses_6T, sizes_T, chunks_2C, numbers_7T, T, C,
    narrow: tl.constexpr, normalised: tl.constexpr, copied: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The step from the new moments, computed again rather than kept; one program for each chunk."""
    program = tl.program_id(0)
    tensor, begin = tl.load(chunks_2C + program), tl.load(chunks_2C + C + program)
    size = tl.load(sizes_T + tensor)
    x_at, m_at = _pointer(addresses_6T, 0, T, tensor), _pointer(addresses_6T, 2, T, tensor)
    v_at = _pointer(addresses_6T, 3, T, tensor)
    eps, lose = tl.load(numbers_7T + tensor), tl.load(numbers_7T + 4 * T + tensor)
    of_m, of_g = tl.load(numbers_7T + 5 * T + tensor), tl.load(numbers_7T + 6 * T + tensor)
    for offset in range(0, CHUNK, BLOCK):
        at = begin + offset + tl.arange(0, BLOCK)
        inside = at < size
        x = tl.load(x_at + at, mask=inside, other=0.0)
        update = of_m * tl.load(m_at + at, mask=inside, other=0.0)
        if normalised:
            update += of_g * _gradient(addresses_6T, T, tensor, at, inside, narrow)
        x = x - (lose * x + update / (tl.sqrt(tl.load(v_at + at, mask=inside, other=0.0)) + eps))
        tl.store(x_at + at, x, mask=inside)
        if copied:
            copy_at = tl.load(addresses_6T + 5 * T + tensor).to(tl.pointer_type(tl.bfloat16))
            tl.store(copy_at + at, x.to(tl.bfloat16), mask=inside)


@functools.lru_cache(maxsize=16)
def _tables(addresses: tuple[int, ...], sizes: tuple[int, ...], device: torch.device) -> tuple[Tensor, ...]:
    """``addresses_6T, sizes_T, chunks_2C, starts_T1``, int64 on the device, copied there without waiting for it."""
    chunks = [(tensor, begin) for tensor, size in enumerate(sizes) for begin in range(0, size, CHUNK)]
    counts = [-(-size // CHUNK) for size in sizes]
    starts = [sum(counts[:tensor]) for tensor in range(len(sizes) + 1)]
    columns = (addresses, sizes, [tensor for tensor, _ in chunks] + [begin for _, begin in chunks], starts)
    return tuple(torch.tensor(column, dtype=torch.int64).to(device, non_blocking=True) for column in columns)


def _check(lists: dict[str, list[Tensor]], weights: list[Tensor], type_of: dict[str, torch.dtype]) -> None:
    for name, tensors in lists.items():
        if len(tensors) != len(weights):
            raise RuntimeError(f"{name}: {len(tensors)} tensors for {len(weights)} weights")
        for tensor, weight in zip(tensors, weights, strict=True):
            size = 1 if name == "trust_ratios" else weight.numel()
            fits = tensor.is_contiguous() and tensor.numel() == size and tensor.device == weight.device
            if not fits or tensor.dtype != type_of.get(name, torch.float32):
                kind = type_of.get(name, torch.float32)
                raise RuntimeError(f"{name}: must be contiguous, on one device, as long as their weight, and {kind}")


def step(
    weights: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor],
    trust_ratios: list[Tensor], copies: list[Tensor], steps: list[Tensor], lr: Tensor, grad_scale: Tensor,
    beta1: float, beta2: float, eps: float, weight_decay: float, lowest: float, highest: float,
    bias_correction: bool, adapts: bool, normalised: bool,
) -> None:  # fmt: skip
    """One step; tensors as :func:`workbench_kernels.layerwise.layerwise_step` takes them, gradients all of one type.

    Raises:
        RuntimeError: a tensor of another size, type, layout or device.
    """
    device, T = weights[0].device, len(weights)
    grad_type = torch.bfloat16 if grads and grads[0].dtype == torch.bfloat16 else torch.float32
    lists = {
        "weights": weights, "grads": grads, "exp_avgs": exp_avgs, "exp_avg_sqs": exp_avg_sqs,
        "trust_ratios": trust_ratios, "copies": copies or weights,
    }  # fmt: skip
    _check(lists, weights, {"grads": grad_type, "copies": torch.bfloat16 if copies else torch.float32})
    addresses = tuple(tensor.data_ptr() for tensors in lists.values() for tensor in tensors)
    tables = _tables(addresses, tuple(weight.numel() for weight in weights), device)
    addresses_6T, sizes_T, chunks_2C, starts_T1 = tables
    C = chunks_2C.numel() // 2
    lr, grad_scale = (number.to(device, torch.float64) for number in (lr, grad_scale))
    numbers_7T = torch.empty((7, T), dtype=torch.float32, device=device)
    sums_3C = torch.empty((3, C), dtype=torch.float32, device=device)
    t = torch.stack(steps).to(device, torch.float64, non_blocking=True)
    k = (1 - beta2**t).sqrt() if bias_correction else torch.ones_like(t)
    numbers_7T[0], numbers_7T[1], numbers_7T[2] = eps * k, k / (1 - beta1**t) if bias_correction else k, k
    numbers_7T[3] = grad_scale
    narrow, pieces = grad_type == torch.bfloat16, {"CHUNK": CHUNK, "BLOCK": BLOCK}
    if normalised and C:
        sum_squares[(C,)](addresses_6T, sizes_T, chunks_2C, sums_3C, T, C, narrow, **pieces)
        set_scale[(T,)](starts_T1, sums_3C, numbers_7T, grad_scale, eps, T, SUMS)
    if C:
        move_moments[(C,)](
            addresses_6T, sizes_T, chunks_2C, sums_3C, numbers_7T, beta1, 1 - beta1, beta2, 1 - beta2, weight_decay,
            T, C, narrow, normalised, **pieces,
        )  # fmt: skip
        set_step[(T,)](
            addresses_6T, starts_T1, sums_3C, numbers_7T, lr, beta1 if normalised else 1.0, weight_decay, lowest,
            highest, T, C, adapts, normalised, SUMS,
        )  # fmt: skip
        move_weights[(C,)](
            addresses_6T, sizes_T, chunks_2C, numbers_7T, T, C, narrow, normalised, bool(copies), **pieces
        )  # fmt: skip
