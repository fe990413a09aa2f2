"""The layerwise step written out, slowly: tensor by tensor, in float64, on any device. What the kernels must equal."""

from __future__ import annotations

import math

from torch import Tensor


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
    r"""One step; arguments, shapes and types as for the kernels' ``layerwise_step``, all read into float64.

    With s = ``grad_scale``, and lowest <= R(u) <= highest for R(u) = ||x|| / ||u||, or 1 if either norm is 0:

        ghat = s g / (||s g|| + eps)                  where normalised, else s g
        m = b1 m + (1 - b1) ghat;  v = b2 v + (1 - b2) ghat^2;  den = sqrt(v / (1 - b2^t)) + eps
        r = (m / (1 - b1^t)) / den + wd x;  c = ghat / den + wd x
        x <- x - lr (b1 R(r) r + (1 - b1) R(c) c)     where normalised, else x - lr R(r) r

    Source: Zheng et al. 2020 (arXiv 2006.13484), algorithm 2; You et al. 2020 (arXiv 1904.00962), algorithm 2.
    """
    beta1, beta2 = betas
    lowest, highest = ratio_bounds or (0.0, None)
    for i, weight in enumerate(weights):
        x, ghat, t = weight.double(), float(grad_scale) * grads[i].double(), float(steps[i])
        if normalised:
            ghat = ghat / (ghat.norm() + eps)
        m = beta1 * exp_avgs[i].double() + (1 - beta1) * ghat
        v = beta2 * exp_avg_sqs[i].double() + (1 - beta2) * ghat**2
        correction1, correction2 = (1 - beta1**t, 1 - beta2**t) if bias_correction else (1.0, 1.0)
        den = (v / correction2).sqrt() + eps
        r = (m / correction1) / den + weight_decay * x
        c = ghat / den + weight_decay * x

        def ratio(u: Tensor, norm: float = float(x.norm())) -> float:
            if not adapts or norm == 0 or float(u.norm()) == 0:
                return 1.0
            return min(max(norm / float(u.norm()), lowest), math.inf if highest is None else highest)

        share = beta1 if normalised else 1.0
        weight.copy_(x - float(lr) * (share * ratio(r) * r + (1 - share) * ratio(c) * c))
        exp_avgs[i].copy_(m)
        exp_avg_sqs[i].copy_(v)
        trust_ratios[i].fill_(ratio(r))
        if copies:
            copies[i].copy_(weight)
