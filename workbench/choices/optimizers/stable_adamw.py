"""StableAdamW: AdamW whose step shrinks, tensor by tensor, when the second moment is behind the gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from workbench.choices.choice import knob
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.choices.optimizers.tensorwise import Group, States, Tensors, TensorwiseOptimizer, no_steps, pieces, zeros


class StableAdamWOptimizer(TensorwiseOptimizer):
    r"""AdamW with Adafactor's update clipping; a plain optimizer, usable without the rest of the workbench.

    For every parameter tensor x with gradient g, step t counted per tensor, n elements:

        m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  mhat = m / (1 - b1^t);  vhat = v / (1 - b2^t)
        rms = sqrt(mean(g^2 / max(vhat, eps^2)))
        x <- x - lr / max(1, rms) (mhat / (sqrt(vhat) + eps) + wd x)

    rms is about 1 while v describes the present gradients, and above it after they have suddenly grown.

    Args:
        lr: learning rate, >= 0.
        betas: decay rates b1, b2 of the moments, in [0, 1).
        eps: added to the denominator, > 0.
        weight_decay: wd, >= 0; shrinks with the step.

    State per parameter: ``step`` (0-d float32 on the CPU), ``exp_avg`` and ``exp_avg_sq`` (float32, its shape).

    Raises:
        ValueError: a setting out of its range.

    Source: Wortsman et al. 2023 (arXiv 2304.13013), algorithm 2, whose debiased moments are mhat and vhat.
    pytorch-optimizer's StableAdamW is the oracle of the tests; it is not used, because it counts steps per group and
    keeps the moments of bf16 weights in bf16.

    Example:
        >>> weight = torch.nn.Parameter(torch.zeros(2))
        >>> optimizer = StableAdamWOptimizer([weight], lr=0.1, betas=(0.0, 0.99))
        >>> moved = []
        >>> for gradient in (1.0, 1.0, 100.0):
        ...     before, weight.grad = weight.detach().clone(), torch.full((2,), gradient)
        ...     optimizer.step()
        ...     moved.append(round(float((weight.detach() - before).abs().max()), 3))
        >>> moved  # AdamW would move by 0.172 at the third step
        [0.1, 0.1, 0.1]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor,
        betas: tuple[float, float] = (0.9, 0.99),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        """Return two moments in the parameter's shape and a step count."""
        return {"step": no_steps(), "exp_avg": zeros(parameter), "exp_avg_sq": zeros(parameter)}

    def update(self, weights: Tensors, grads: Tensors, states: States, group: Group) -> None:
        """One step of float32 tensors of any shapes, in place."""
        for state in states:
            state["step"] += 1
        # The step size depends on all of a tensor, so a CPU takes tensors one at a time, each in two sweeps.
        if weights[0].device.type == "cpu":
            for weight, grad, state in zip(weights, grads, states, strict=True):
                _step_tensors([weight], [grad], [state], group)
        else:
            _step_tensors(weights, grads, states, group)


def _step_tensors(weights: Tensors, grads: Tensors, states: States, group: Group) -> None:
    """The formula for tensors of any shapes: moments and rms in one sweep, the step in another."""
    (beta1, beta2), eps, decay, lr = group["betas"], group["eps"], group["weight_decay"], group["lr"]
    moments, squares = [state["exp_avg"] for state in states], [state["exp_avg_sq"] for state in states]
    steps = [state["step"].item() for state in states]  # on the CPU: no wait for the device
    first, second = [1 - beta1**step for step in steps], [1 - beta2**step for step in steps]
    # mean(g^2 / max(vhat, eps^2)) per tensor, as 0-d tensors that stay on the device.
    means = [torch.zeros((), device=weight.device) for weight in weights]
    for g, m, v in pieces(grads, moments, squares):
        torch._foreach_lerp_(m, g, 1 - beta1)
        torch._foreach_mul_(v, beta2)
        torch._foreach_addcmul_(v, g, g, 1 - beta2)
        denominator = torch._foreach_clamp_min(v, [eps * eps * scale for scale in second])
        torch._foreach_sqrt_(denominator)
        norms = torch._foreach_norm(torch._foreach_div(g, denominator))
        torch._foreach_addcmul_(means, norms, norms)
    torch._foreach_mul_(means, [scale / weight.numel() for scale, weight in zip(second, weights, strict=True)])
    rates = torch._foreach_sqrt(means)
    torch._foreach_clamp_min_(rates, 1.0)
    torch._foreach_reciprocal_(rates)
    torch._foreach_mul_(rates, lr)

    shrink = torch._foreach_mul(rates, -decay)
    torch._foreach_add_(shrink, 1.0)
    # m / first / (sqrt(v / second) + eps) = (sqrt(second) / first) m / (sqrt(v) + eps sqrt(second))
    torch._foreach_mul_(rates, [scale**0.5 / other for scale, other in zip(second, first, strict=True)])
    for x, m, v in pieces(weights, moments, squares):
        denominator = torch._foreach_sqrt(v)
        torch._foreach_add_(denominator, [eps * scale**0.5 for scale in second])
        if decay:
            torch._foreach_mul_(x, shrink)
        update = torch._foreach_div(m, denominator)
        torch._foreach_mul_(update, rates)
        torch._foreach_sub_(x, update)


class StableAdamW(OptimizerChoice):
    """AdamW that takes smaller steps while gradients are larger than its second moment predicts.

    See :class:`StableAdamWOptimizer`: two moments of the parameter's shape.

    Source: Wortsman et al. 2023 (arXiv 2304.13013), algorithm 2.
    """

    kind: Literal["stable_adamw"] = "stable_adamw"
    moments: ClassVar[tuple[str, ...]] = ("exp_avg", "exp_avg_sq")
    lr: float = knob(3e-3, "peak learning rate", gt=0, le=100, scale="log")
    # Clipping by the global norm and by rms answer the same spikes; rms is the one that is studied here.
    clip_norm: float | None = knob(None, "global gradient norm is clipped to this; empty means no clipping", gt=0)
    beta1: float = knob(0.9, "decay of the first moment", ge=0, lt=1)
    beta2: float = knob(0.98, "decay of the second moment", ge=0, lt=1)
    eps: float = knob(1e-8, "added to the denominator", gt=0, scale="log")

    def build(self, groups: list[dict[str, Any]], device: torch.device) -> torch.optim.Optimizer:
        """Return a :class:`StableAdamWOptimizer`; moments have their parameter's shape,
        float32 whatever its precision.
        """
        return StableAdamWOptimizer(groups, lr=self.lr, betas=(self.beta1, self.beta2), eps=self.eps)
