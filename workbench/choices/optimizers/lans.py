"""LANS: normalised gradients, layerwise trust ratios and Nesterov momentum, for very large batches."""

from __future__ import annotations

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
            by_device: dict[torch.device, list[Tensor]] = {}
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_device.setdefault(parameter.device, []).append(parameter)
            for parameters in by_device.values():
                self._step_tensors(parameters, group)
        return loss

    def _step_tensors(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """One step of tensors that share a device and settings."""
        for parameter in parameters:
            self._prepare(parameter)
        states = [self.state[parameter] for parameter in parameters]
        weights = _in_float32(parameters)
        grads = _in_float32([parameter.grad for parameter in parameters])
        moments = [state["exp_avg"] for state in states]
        squares = [state["exp_avg_sq"] for state in states]
        steps = [state["step"].item() for state in states]
        beta1, beta2, eps, decay = *group["betas"], group["eps"], group["weight_decay"]

        norms = torch._foreach_norm(grads)
        torch._foreach_add_(norms, eps)
        ghat = torch._foreach_div(grads, norms)
        torch._foreach_lerp_(moments, ghat, 1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, ghat, ghat, 1 - beta2)

        denominators = torch._foreach_div(squares, [1 - beta2**t for t in steps])
        torch._foreach_sqrt_(denominators)
        torch._foreach_add_(denominators, eps)
        momentum = torch._foreach_div(moments, [1 - beta1**t for t in steps])
        torch._foreach_div_(momentum, denominators)
        torch._foreach_div_(ghat, denominators)
        if decay:
            torch._foreach_add_(momentum, weights, alpha=decay)
            torch._foreach_add_(ghat, weights, alpha=decay)

        weight_norms = torch.stack(torch._foreach_norm(weights))
        ratio_r = _trust_ratios(weight_norms, torch.stack(torch._foreach_norm(momentum)))
        ratio_c = _trust_ratios(weight_norms, torch.stack(torch._foreach_norm(ghat)))
        lr = group["lr"]
        torch._foreach_addcmul_(weights, momentum, list((-lr * beta1 * ratio_r).unbind()))
        torch._foreach_addcmul_(weights, ghat, list((-lr * (1 - beta1) * ratio_c).unbind()))

        for parameter, weight, state, ratio in zip(parameters, weights, states, ratio_r.unbind(), strict=True):
            if weight is not parameter:
                parameter.copy_(weight)
            state["trust_ratio"].copy_(ratio)

    def _prepare(self, parameter: Tensor) -> None:
        """Refuse gradients that the formula does not cover, create the state, count the step."""
        assert parameter.grad is not None
        if parameter.grad.is_sparse or parameter.is_complex():
            raise RuntimeError("LANS: sparse gradients and complex parameters are not covered; use dense real ones")
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["exp_avg"] = torch.zeros_like(parameter, dtype=torch.float32)
            state["exp_avg_sq"] = torch.zeros_like(parameter, dtype=torch.float32)
            state["trust_ratio"] = torch.ones((), dtype=torch.float32, device=parameter.device)
        state["step"] += 1

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state; unlike torch's own loading it never rounds moments to the parameter's type."""
        super().load_state_dict(state_dict)
        saved_order = [key for group in state_dict["param_groups"] for key in group["params"]]
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        for key, parameter in zip(saved_order, parameters, strict=True):
            for name, value in state_dict["state"].get(key, {}).items():
                device = "cpu" if name == "step" else parameter.device
                self.state[parameter][name] = torch.as_tensor(value).to(device, torch.float32).clone()


def _in_float32(tensors: list[Any]) -> list[Tensor]:
    """The tensors themselves where they are float32, float32 copies elsewhere."""
    return [tensor if tensor.dtype == torch.float32 else tensor.float() for tensor in tensors]


def _trust_ratios(weight_norms: Tensor, update_norms: Tensor) -> Tensor:
    """||x|| / ||u|| per tensor, 1 where either is 0; (tensors,) float32."""
    return torch.where((weight_norms > 0) & (update_norms > 0), weight_norms / update_norms, 1.0)


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
        return LANS(groups, lr=self.lr, betas=(self.beta1, self.beta2), eps=self.eps)
