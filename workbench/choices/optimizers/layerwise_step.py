"""One layerwise adaptive step, three times: multi-tensor for accelerators, in blocks and compiled for a CPU."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from workbench.choices.optimizers.tensorwise import BLOCK


class Constants(NamedTuple):
    """The numbers of one step that all elements of a tensor share, in the order in which the compiled step reads them.

    With k = sqrt(1 - b2^t), or 1 without bias correction:

    Attributes:
        beta1, beta2: decay rates of the moments.
        norm_eps: added to the gradient's norm where every tensor's gradient is normalised.
        scale: what the gradient is multiplied by where it is not.
        eps: k eps; with it the bias correction of the second moment leaves the tensors.
        momentum: k / (1 - b1^t), the factor of m / (sqrt(v) + k eps).
        gradient: k, the factor of ghat / (sqrt(v) + k eps).
        decay: weight decay, not multiplied by lr.
        rate_momentum, rate_gradient: learning rate of either direction (a tensor where the group's lr is one).
        lowest, highest: bounds of the trust ratio.
        adapts: 1 if there is a trust ratio, 0 if it is 1.
    """

    beta1: float
    beta2: float
    norm_eps: float
    scale: float
    eps: float
    momentum: float
    gradient: float
    decay: float
    rate_momentum: Any
    rate_gradient: Any
    lowest: float = 0.0
    highest: float = math.inf
    adapts: float = 1.0


def bias_corrections(betas: tuple[float, float], step: float) -> tuple[float, float]:
    """``(1 - b1^t, sqrt(1 - b2^t))`` of step t >= 1: what the moments' zero start is divided out by."""
    return 1 - betas[0] ** step, math.sqrt(1 - betas[1] ** step)


# --- accelerators, and small tensors of a CPU ---
# Here and below: R(u) u does not change when u is scaled, so with decay wd both directions are kept divided by wd,
# and the scale is needed only where R falls back to 1. That leaves fewer operations over all elements.


def step_together(
    weights: list[Tensor], grads: list[Tensor], states: list[Any], constants: list[Constants], normalised: bool
) -> None:
    """One step of tensors of any shapes on one device: few launches on an accelerator, and no wait for it.

    Args:
        weights, grads: float32; the weights are changed in place.
        states: their ``exp_avg, exp_avg_sq, trust_ratio``, changed in place.
        constants: by tensor; they may differ in what depends on the tensor's number of steps.
        normalised: every gradient is divided by its norm, and there is the second direction.
    """
    moments = [state["exp_avg"] for state in states]
    squares = [state["exp_avg_sq"] for state in states]
    shared = constants[0]
    if normalised:
        norms = torch._foreach_norm(grads)
        torch._foreach_add_(norms, shared.norm_eps)
        grads = list(torch._foreach_div(grads, norms))
    elif isinstance(shared.scale, Tensor) or shared.scale != 1.0:
        grads = list(torch._foreach_mul(grads, shared.scale))
    torch._foreach_lerp_(moments, grads, 1 - shared.beta1)
    torch._foreach_mul_(squares, shared.beta2)
    torch._foreach_addcmul_(squares, grads, grads, 1 - shared.beta2)
    den = torch._foreach_sqrt(squares)
    torch._foreach_add_(den, [each.eps for each in constants])
    weight_norms = torch.stack(torch._foreach_norm(weights)) if shared.adapts else None

    # The directions first: both belong to the weights before the step.
    chosen = [(moments, [each.momentum for each in constants], shared.rate_momentum)]
    if normalised:
        chosen.append((grads, [each.gradient for each in constants], shared.rate_gradient))
    directions = []
    for moving, factors, rate in chosen:
        if shared.decay:
            u = torch._foreach_addcdiv(weights, moving, den, [factor / shared.decay for factor in factors])
        else:
            u = torch._foreach_div(moving, den)
            torch._foreach_mul_(u, factors)
        directions.append((u, rate))
    for index, (u, rate) in enumerate(directions):
        if weight_norms is None:
            torch._foreach_add_(weights, torch._foreach_mul(u, -rate * (shared.decay or 1.0)))
            continue
        factor = _factors(weight_norms, torch.stack(torch._foreach_norm(u)), shared)
        torch._foreach_addcmul_(weights, u, list((factor * -rate).unbind()))
        if index == 0:
            for state, ratio in zip(states, (factor / (shared.decay or 1.0)).unbind(), strict=True):
                state["trust_ratio"].copy_(ratio)


def _factors(weight_norms: Tensor, norms: Tensor, constants: Constants) -> Tensor:
    """R(u) times the scale (decay, or 1) by which the directions with these ``norms`` were divided."""
    scale = constants.decay or 1.0
    ratios = (weight_norms / norms).clamp(constants.lowest * scale, constants.highest * scale)
    return torch.where((weight_norms > 0) & (norms > 0), ratios, scale)


# --- CPU, eager ---

LARGE = 16_384
"""Elements from which a CPU tensor is worth a step of its own: a call of compiled code takes 40 microseconds."""


def step_in_blocks(weight: Tensor, grad: Tensor, state: dict[str, Any], constants: Constants, normalised: bool) -> None:
    """One step of one CPU tensor of any shape: the formula in cache-sized pieces, two sweeps around the norms.

    Args:
        weight, grad: float32, contiguous; the weight is changed in place.
        state: its ``exp_avg, exp_avg_sq, trust_ratio``, changed in place.
        constants: of this step, in numbers.
        normalised: the gradient is divided by its norm, and there is the second direction.
    """
    beta1, beta2, norm_eps, scale, eps, momentum, gradient, decay, rate_momentum, rate_gradient, *_ = constants
    if normalised:
        scale = 1 / (torch.linalg.vector_norm(grad).item() + norm_eps)
    tensors = (weight, grad, state["exp_avg"], state["exp_avg_sq"])
    blocks = list(zip(*(tensor.view(-1).split(BLOCK) for tensor in tensors), strict=True))
    buffers = [torch.empty(min(BLOCK, weight.numel()), dtype=torch.float32, device="cpu") for _ in range(3)]

    # Sums over blocks in Python's float64: a norm of millions of elements keeps its digits.
    sum_x = sum_r = sum_c = 0.0
    for x, g, m, v in blocks:
        ghat, den, u = (buffer[: len(x)] for buffer in buffers)
        ghat = g if scale == 1.0 else torch.mul(g, scale, out=ghat)
        m.lerp_(ghat, 1 - beta1)
        v.mul_(beta2).addcmul_(ghat, ghat, value=1 - beta2)
        if constants.adapts:
            torch.sqrt(v, out=den).add_(eps)
            sum_x += x.dot(x).item()
            sum_r += _direction(x, m, den, momentum, decay, u).dot(u).item()
            if normalised:
                sum_c += _direction(x, ghat, den, gradient, decay, u).dot(u).item()

    ratio_r = _ratio(sum_x, sum_r, constants)
    step_r = rate_momentum * ratio_r
    step_c = rate_gradient * _ratio(sum_x, sum_c, constants) if normalised else 0.0
    for x, g, m, v in blocks:
        # Computed again rather than kept: keeping would take two more tensors of the parameter's size.
        update, den, _ = (buffer[: len(x)] for buffer in buffers)
        torch.sqrt(v, out=den).add_(eps)
        if decay:
            x.mul_(1 - decay * (step_r + step_c))
        if normalised:
            torch.mul(m, step_r * momentum, out=update).add_(g, alpha=step_c * gradient * scale)
            x.addcdiv_(update, den, value=-1.0)
        else:
            x.addcdiv_(m, den, value=-step_r * momentum)
    state["trust_ratio"].fill_(ratio_r)


def _direction(x: Tensor, moment: Tensor, den: Tensor, scale: float, decay: float, out: Tensor) -> Tensor:
    """scale moment / den + decay x, divided by the decay where there is one; all flat and of one length."""
    if decay:
        return torch.addcdiv(x, moment, den, value=scale / decay, out=out)
    return torch.div(moment, den, out=out).mul_(scale)


def _ratio(sum_x: float, sum_u: float, constants: Constants) -> float:
    """R(u) from the sums of squares of x and of u, u divided by the decay where there is one."""
    if not (constants.adapts and sum_x and sum_u):
        return 1.0
    return min(max(math.sqrt(sum_x / sum_u) / (constants.decay or 1.0), constants.lowest), constants.highest)


# --- CPU, compiled ---


@functools.cache
def compiled_step(normalised: bool) -> Callable[..., None]:
    """The compiled form of :func:`fuse`, one for each value of ``normalised``; compiled when it is first called.

    Tensors must be flat, (N,), and no views of other tensors, or every shape of the base asks for a graph of its own.
    """

    # Two functions rather than an argument, because graphs are counted and limited by function.
    def step_normalised(x: Tensor, g: Tensor, m: Tensor, v: Tensor, ratio: Tensor, constants: Tensor) -> None:
        fuse(x, g, m, v, ratio, constants, normalised=True)

    def step_plain(x: Tensor, g: Tensor, m: Tensor, v: Tensor, ratio: Tensor, constants: Tensor) -> None:
        fuse(x, g, m, v, ratio, constants, normalised=False)

    return torch.compile(step_normalised if normalised else step_plain, dynamic=True, fullgraph=True)


def fuse(x: Tensor, g: Tensor, m: Tensor, v: Tensor, ratio: Tensor, constants: Tensor, normalised: bool) -> None:
    """One step of a tensor, for the compiler: three loops over its elements.

    Args:
        x, g, m, v: weights, gradient and both moments, (N,) float32; x, m and v are changed in place.
        ratio: 0-d, takes R(r).
        constants: :class:`Constants` as (13,) float64. A tensor: numbers would be compiled in, and a learning rate
            that moves would ask for a new graph at every step.
        normalised: the gradient is divided by its norm, and there is the second direction.
    """
    (
        beta1, beta2, norm_eps, scale, eps, momentum, gradient, decay, rate_momentum, rate_gradient, lowest, highest,
        adapts,
    ) = constants.unbind()  # fmt: skip
    if normalised:
        scale = 1 / (g.square().sum().sqrt().double() + norm_eps)
    # Stacked, so that they are computed once and loaded; as expressions they would be computed again for every 16
    # elements, square root and division included: 1.6x the time of the whole step.
    numbers = torch.stack([beta1, 1 - beta1, beta2, 1 - beta2, scale, eps, momentum, gradient, decay]).float()
    b1, rest1, b2, rest2, s, e, p, q, wd = numbers.unbind()
    ghat = s * g
    new_m = b1 * m + rest1 * ghat
    new_v = b2 * v + (rest2 * ghat) * ghat
    inverse = 1 / (new_v.sqrt() + e)
    r = (p * new_m) * inverse + wd * x
    sum_x, sum_r = x.square().sum(), r.square().sum()

    def trust(sum_u: Tensor) -> Tensor:
        quotient = torch.clamp((sum_x / sum_u).sqrt().double(), lowest, highest)
        return torch.where((adapts > 0) & (sum_x > 0) & (sum_u > 0), quotient, 1.0)

    ratio_r = trust(sum_r)
    step_r, step_c = rate_momentum * ratio_r, torch.zeros_like(ratio_r)
    if normalised:
        c = (q * ghat) * inverse + wd * x
        step_c = rate_gradient * trust(c.square().sum())
    shares = torch.stack([1 - decay * (step_r + step_c), step_r * momentum, step_c * gradient * scale]).float()
    keep, of_m, of_g = shares.unbind()
    update = of_m * new_m
    if normalised:
        update = update + of_g * g
    # From the new moments again: storing both directions would take two more passes over memory.
    x.copy_(keep * x - update / (new_v.sqrt() + e))
    m.copy_(new_m)
    v.copy_(new_v)
    ratio.copy_(ratio_r)
