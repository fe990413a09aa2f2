"""LANS: normalised gradients, layerwise trust ratios and Nesterov momentum, for very large batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal

import torch
from torch import Tensor

from workbench.choices.choice import knob, one_of
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.choices.schedules.schedule import Schedule
from workbench.choices.schedules.warmup_hold_decay import WarmupHoldDecay


class LANS(torch.optim.Optimizer):
    r"""LANS on torch's multi-tensor operations; a plain optimizer, usable without the rest of the workbench.

    For every parameter tensor x with gradient g, step t counted per tensor:

        ghat = g / (||g|| + eps)
        m = b1 m + (1 - b1) ghat;  v = b2 v + (1 - b2) ghat^2;  den = sqrt(v / (1 - b2^t)) + eps
        r = (m / (1 - b1^t)) / den + wd x;  c = ghat / den + wd x;  R(u) = ||x|| / ||u||, 1 if either norm is 0
        x <- x - lr (b1 R(r) r + (1 - b1) R(c) c)

    The step does not change when the gradient is scaled, and moves no tensor by more than lr times its own norm.
    A tensor without a gradient keeps its moments and its own t; an all-zero gradient decays the moments and nothing
    else enters them.

    Args:
        params: parameters or parameter groups, of any shape and floating type.
        lr: learning rate, > 0: the largest relative change of a tensor in one step.
        betas: decay rates b1, b2 of the moments, in [0, 1).
        eps: added to the gradient's norm and to the denominator, > 0.
        weight_decay: wd, >= 0.

    State per parameter: ``step`` (0-d float32 on the CPU), ``exp_avg`` and ``exp_avg_sq`` (float32 whatever the
    parameter's type), ``trust_ratio`` (0-d float32 on the device: R(r) of the last step, never synchronised).

    Raises:
        ValueError: a setting out of its range.
        RuntimeError: a sparse or complex gradient.

    Source: Zheng et al. 2020 (arXiv 2006.13484), algorithm 2. As in the authors' fused implementation, the current
    gradient's part has no bias correction of its first moment and sees the updated second moment.

    Example:
        >>> weight = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
        >>> optimizer = LANS([weight], lr=0.1, weight_decay=0.0)
        >>> weight.square().sum().backward()
        >>> optimizer.step()
        >>> round(float((weight.detach() - torch.tensor([3.0, 4.0])).norm()), 3)  # lr * ||x||
        0.5
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
    ) -> None:
        for name, value, legal, fits in (
            ("lr", float(lr), "> 0", float(lr) > 0),
            ("betas[0]", betas[0], "in [0, 1)", 0 <= betas[0] < 1),
            ("betas[1]", betas[1], "in [0, 1)", 0 <= betas[1] < 1),
            ("eps", eps, "> 0", eps > 0),
            ("weight_decay", weight_decay, ">= 0", weight_decay >= 0),
        ):
            if not fits:
                raise ValueError(f"LANS: {name} must be {legal}, got {value}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Take one step; returns what ``closure`` (which recomputes the loss) returns, or None."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            # By device: norms of tensors on different devices cannot be stacked.
            by_device: dict[torch.device, list[Tensor]] = {}
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_device.setdefault(parameter.device, []).append(parameter)
            for device, parameters in by_device.items():
                for parameter in parameters:
                    self._prepare(parameter)
                states = [self.state[parameter] for parameter in parameters]
                weights = [_in_float32(parameter) for parameter in parameters]
                grads = [_in_float32(parameter.grad) for parameter in parameters]
                if device.type == "cpu":
                    for weight, grad, state in zip(weights, grads, states, strict=True):
                        _step_in_blocks(weight, grad, state, group)
                else:
                    _step_together(weights, grads, states, group)
                for parameter, weight in zip(parameters, weights, strict=True):
                    if weight is not parameter:
                        parameter.copy_(weight)
        return loss

    def _prepare(self, parameter: Tensor) -> None:
        """Refuse gradients that the formula does not cover, create the state, count the step."""
        assert parameter.grad is not None
        if parameter.grad.is_sparse or parameter.is_complex():
            raise RuntimeError("LANS: sparse gradients and complex parameters are not covered; use dense real ones")
        state = self.state[parameter]
        if not state:
            # On the CPU, where reading it costs nothing; a tensor, as in torch's own optimizers, so that checkpoints
            # need no exception.
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["exp_avg"] = torch.zeros(parameter.shape, dtype=torch.float32, device=parameter.device)
            state["exp_avg_sq"] = torch.zeros(parameter.shape, dtype=torch.float32, device=parameter.device)
            state["trust_ratio"] = torch.ones((), dtype=torch.float32, device=parameter.device)
        state["step"] += 1

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state; moments (parameter's shape) are never rounded to its type, as torch's own loading would."""
        super().load_state_dict(state_dict)
        # What super() has just cast to the parameters' type is taken from the saved state once more, unrounded.
        saved_order = [key for group in state_dict["param_groups"] for key in group["params"]]
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        for key, parameter in zip(saved_order, parameters, strict=True):
            for name, value in state_dict["state"].get(key, {}).items():
                device = "cpu" if name == "step" else parameter.device
                self.state[parameter][name] = torch.as_tensor(value).to(device, torch.float32).clone()


def _in_float32(tensor: Any) -> Tensor:
    """The tensor itself where it is float32, a float32 copy elsewhere."""
    return tensor if tensor.dtype == torch.float32 else tensor.float()


# Both implementations below factor the constants of the bias correction out of the tensors: with k = sqrt(1 - b2^t),
# 1 / den = k / (sqrt(v) + k eps), and with decay r = wd (x + k / (wd (1 - b1^t)) m / (sqrt(v) + k eps)), likewise c.
# R(u) u does not change when u is scaled, so the scale wd is needed only where R falls back to 1. That leaves three
# fewer operations over all elements in each direction.


def _step_together(weights: list[Tensor], grads: list[Tensor], states: list[Any], group: dict[str, Any]) -> None:
    """One step of all tensors of a group at once: on an accelerator, few launches and no wait for the device."""
    (beta1, beta2), eps, decay, lr = group["betas"], group["eps"], group["weight_decay"], group["lr"]
    moments = [state["exp_avg"] for state in states]
    squares = [state["exp_avg_sq"] for state in states]
    # CPU tensors: no wait for the device.
    steps = [state["step"].item() for state in states]
    root = [math.sqrt(1 - beta2**step) for step in steps]
    momentum_scale = [k / (1 - beta1**step) for k, step in zip(root, steps, strict=True)]

    norms = torch._foreach_norm(grads)
    torch._foreach_add_(norms, eps)
    ghat = torch._foreach_div(grads, norms)
    torch._foreach_lerp_(moments, ghat, 1 - beta1)
    torch._foreach_mul_(squares, beta2)
    torch._foreach_addcmul_(squares, ghat, ghat, 1 - beta2)
    den = torch._foreach_sqrt(squares)
    torch._foreach_add_(den, [eps * k for k in root])
    if decay:
        r = torch._foreach_addcdiv(weights, moments, den, [scale / decay for scale in momentum_scale])
        c = torch._foreach_addcdiv(weights, ghat, den, [k / decay for k in root])
    else:
        r, c = torch._foreach_div(moments, den), torch._foreach_div(ghat, den)
        torch._foreach_mul_(r, momentum_scale)
        torch._foreach_mul_(c, root)

    weight_norms = torch.stack(torch._foreach_norm(weights))
    factor_r = _factors(weight_norms, torch.stack(torch._foreach_norm(r)), decay or 1.0)
    factor_c = _factors(weight_norms, torch.stack(torch._foreach_norm(c)), decay or 1.0)
    torch._foreach_addcmul_(weights, r, list((factor_r * (-lr * beta1)).unbind()))
    torch._foreach_addcmul_(weights, c, list((factor_c * (-lr * (1 - beta1))).unbind()))
    for state, ratio in zip(states, (factor_r / (decay or 1.0)).unbind(), strict=True):
        state["trust_ratio"].copy_(ratio)


def _factors(weight_norms: Tensor, norms: Tensor, scale: float) -> Tensor:
    """R(u) scale for directions u = scale times a tensor with these norms: ||x|| / norm, or ``scale`` where R is 1."""
    return torch.where((weight_norms > 0) & (norms > 0), weight_norms / norms, scale)


_BLOCK = 32_768
"""Elements worked on at a time on a CPU: seven float32 blocks of this size stay in a core's second-level cache, while
whole tensors would travel to memory and back for every operation."""


def _step_in_blocks(weight: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
    """One step of one tensor on a CPU: the same formula in cache-sized pieces, two sweeps around the norms."""
    (beta1, beta2), eps, decay, lr = group["betas"], group["eps"], group["weight_decay"], float(group["lr"])
    step = state["step"].item()
    root = math.sqrt(1 - beta2**step)
    momentum_scale = root / (1 - beta1**step)
    normalise = 1 / (torch.linalg.vector_norm(grad).item() + eps)
    flat = weight.reshape(-1)  # a view, or for a transposed tensor a copy that is written back at the end
    tensors = (flat, grad.reshape(-1), state["exp_avg"].view(-1), state["exp_avg_sq"].view(-1))
    blocks = list(zip(*(tensor.split(_BLOCK) for tensor in tensors), strict=True))
    buffers = [torch.empty(min(_BLOCK, flat.numel()), dtype=torch.float32, device="cpu") for _ in range(3)]

    # Sums over blocks in Python's float64: a norm of millions of elements keeps its digits.
    sum_x = sum_r = sum_c = 0.0
    for x, g, m, v in blocks:
        ghat, den, direction = (buffer[: len(x)] for buffer in buffers)
        torch.mul(g, normalise, out=ghat)
        m.lerp_(ghat, 1 - beta1)
        v.mul_(beta2).addcmul_(ghat, ghat, value=1 - beta2)
        torch.sqrt(v, out=den).add_(eps * root)
        sum_x += x.dot(x).item()
        sum_r += _direction(x, m, den, momentum_scale, decay, direction).dot(direction).item()
        sum_c += _direction(x, ghat, den, root, decay, direction).dot(direction).item()

    ratio_r = math.sqrt(sum_x / sum_r) / (decay or 1.0) if sum_x and sum_r else 1.0
    ratio_c = math.sqrt(sum_x / sum_c) / (decay or 1.0) if sum_x and sum_c else 1.0
    weight_r, weight_c = lr * beta1 * ratio_r, lr * (1 - beta1) * ratio_c
    for x, g, m, v in blocks:
        # Computed again rather than kept: keeping would take two more tensors of the parameter's size.
        update, den, _ = (buffer[: len(x)] for buffer in buffers)
        torch.sqrt(v, out=den).add_(eps * root)
        torch.mul(m, weight_r * momentum_scale, out=update).add_(g, alpha=weight_c * root * normalise)
        if decay:
            x.mul_(1 - decay * (weight_r + weight_c))
        x.addcdiv_(update, den, value=-1.0)
    if flat.data_ptr() != weight.data_ptr():
        weight.copy_(flat.view_as(weight))
    state["trust_ratio"].fill_(ratio_r)


def _direction(x: Tensor, moment: Tensor, den: Tensor, scale: float, decay: float, out: Tensor) -> Tensor:
    """scale moment / den + decay x, divided by the decay where there is one; all flat and of one length."""
    if decay:
        return torch.addcdiv(x, moment, den, value=scale / decay, out=out)
    return torch.div(moment, den, out=out).mul_(scale)


class Lans(OptimizerChoice):
    """Layerwise adaptive steps with Nesterov momentum for very large batches.

    See :class:`LANS` for the formula. The defaults are those published for the first phase of BERT-large (96K rows of
    128 tokens): lr .00675, warm-up 42.65%, hold 27.35%, linear decay; no clipping, since gradients are normalised.

    Source: Zheng et al. 2020 (arXiv 2006.13484), section 3 and table 2.
    """

    kind: Literal["lans"] = "lans"
    lr: float = knob(
        6.75e-3, "peak learning rate: the largest relative change of a tensor per step", gt=0, le=100, scale="log"
    )
    schedule: one_of(Schedule) = knob(  # type: ignore[valid-type]
        help="shape of the learning rate, as a factor on lr",
        default_factory=lambda: WarmupHoldDecay(warmup=0.4265, hold=0.2735),
    )
    clip_norm: float | None = knob(None, "global gradient norm is clipped to this; empty means no clipping", gt=0)
    beta1: float = knob(0.9, "decay of the first moment, and its share of the step", ge=0, lt=1)
    beta2: float = knob(0.999, "decay of the second moment", ge=0, lt=1)
    eps: float = knob(1e-6, "added to the gradient's norm and to the denominator", gt=0, scale="log")

    def build(self, groups: list[dict[str, Any]], device: torch.device) -> torch.optim.Optimizer:
        """A :class:`LANS`; both moments have their parameter's shape, in float32 whatever its precision."""
        return LANS(groups, lr=self.lr, betas=(self.beta1, self.beta2), eps=self.eps)
