"""Sophia-G: momentum divided by an estimate of the curvature, clipped element by element."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import torch
from torch import Tensor

from workbench.choices.choice import Problem, knob
from workbench.choices.optimizers.optimizer import OptimizerChoice, weight_decay_knob
from workbench.choices.optimizers.tensorwise import (
    Group,
    States,
    Tensors,
    TensorwiseOptimizer,
    descend,
    in_float32,
    pieces,
    zeros,
)
from workbench.choices.schedules.schedule import Scheduled


class SophiaOptimizer(TensorwiseOptimizer):
    r"""Sophia-G; a plain optimizer, usable without the rest of the workbench.

    Every ``k`` steps :meth:`curvature` takes the gradient q of the mean loss over B labels that were sampled from the
    model's own prediction (Gauss-Newton-Bartlett), and for every step g is the ordinary gradient, element by element:

        h = b2 h + (1 - b2) B q^2
        m = b1 m + (1 - b1) g
        x <- x - lr (clip(m / max(gamma h, eps), -1, 1) + wd x)

    While h is 0, before the first estimate, every element that has a direction moves by lr.

    Args:
        lr: learning rate, >= 0: the most that an element moves in one step.
        betas: decay rates b1, b2, in [0, 1).
        gamma: scales the curvature, > 0: the smaller it is, the more elements are clipped.
        eps: smallest denominator, > 0.
        weight_decay: wd, >= 0.

    State per parameter: ``exp_avg`` and ``hessian``, float32 in its shape.

    Raises:
        ValueError: a setting out of its range.

    Source: Liu et al. 2023 (arXiv 2305.14342), algorithms 2 and 3. pytorch-optimizer has the Hutchinson variant alone,
    which needs second derivatives of every operation; fed with our h it is the oracle of the tests.

    Example:
        >>> weight = torch.nn.Parameter(torch.zeros(2))
        >>> optimizer = SophiaOptimizer([weight], lr=0.1, betas=(0.0, 0.0), gamma=1.0, weight_decay=0.0)
        >>> weight.grad = torch.tensor([1.0, 2.0])
        >>> optimizer.curvature(labels=1)  # h = q^2
        >>> weight.grad = torch.tensor([0.5, 8.0])
        >>> optimizer.step()
        >>> [round(x, 4) for x in weight.tolist()]  # -.1 (.5 / 1) and -.1 clip(8 / 4)
        [-0.05, -0.1]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor,
        betas: tuple[float, float] = (0.965, 0.99),
        gamma: float = 0.05,
        eps: float = 1e-12,
        weight_decay: float = 0.1,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "gamma": gamma, "eps": eps, "weight_decay": weight_decay})

    def start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        """Momentum and curvature, in the parameter's shape."""
        return {"exp_avg": zeros(parameter), "hessian": zeros(parameter)}

    @torch.no_grad()
    def curvature(self, labels: int) -> None:
        """Take in the gradients that stand in ``grad`` (any shapes) as those of sampled labels; weights stay.

        Args:
            labels: how many labels the mean loss was taken over, B.
        """
        for group in self.param_groups:
            beta2 = group["betas"][1]
            held = [parameter for parameter in group["params"] if parameter.grad is not None]
            if not held:
                continue
            hessians = [self.state_of(parameter, group)["hessian"] for parameter in held]
            for h, q in pieces(hessians, [in_float32(parameter.grad) for parameter in held]):
                torch._foreach_mul_(h, beta2)
                torch._foreach_addcmul_(h, q, q, (1 - beta2) * labels)

    def update(self, weights: Tensors, grads: Tensors, states: States, group: Group) -> None:
        """One step of float32 tensors of any shapes, in place."""
        beta1, lr, decay = group["betas"][0], group["lr"], group["weight_decay"]
        moments, hessians = [state["exp_avg"] for state in states], [state["hessian"] for state in states]
        for x, g, m, h in pieces(weights, grads, moments, hessians):
            torch._foreach_lerp_(m, g, 1 - beta1)
            denominator = torch._foreach_mul(h, group["gamma"])
            torch._foreach_clamp_min_(denominator, group["eps"])
            update = list(torch._foreach_div(m, denominator))
            torch._foreach_clamp_min_(update, -1.0)
            torch._foreach_clamp_max_(update, 1.0)
            if decay:
                torch._foreach_mul_(x, 1 - lr * decay)
            descend(x, update, lr)


class Sophia(OptimizerChoice):
    """Momentum over an estimated diagonal of the curvature, every element's step clipped to the learning rate.

    See :class:`SophiaOptimizer`: momentum m and curvature h of the parameter's shape, h from a second backward pass.

    Source: Liu et al. 2023 (arXiv 2305.14342), Sophia-G.
    """

    kind: Literal["sophia"] = "sophia"
    lr: float = knob(1e-3, "peak learning rate: the most that a weight moves per step", gt=0, le=100, scale="log")
    weight_decay: Scheduled = weight_decay_knob(0.1)
    beta1: float = knob(0.965, "decay of the momentum", ge=0, lt=1)
    beta2: float = knob(0.99, "decay of the curvature, per estimate", ge=0, lt=1)
    gamma: float = knob(0.05, "scale of the curvature: the smaller, the more weights move by lr", gt=0, scale="log")
    eps: float = knob(1e-12, "smallest denominator", gt=0, scale="log")
    curvature_every: int = knob(
        10,
        "steps between curvature estimates, each a forward and backward pass on sampled labels",
        ge=1,
        unit="steps",
        scale="log",
    )

    def build(self, groups: list[dict[str, Any]], device: torch.device) -> torch.optim.Optimizer:
        """A :class:`SophiaOptimizer`; momentum and curvature have their parameter's shape, in float32."""
        return SophiaOptimizer(groups, lr=self.lr, betas=(self.beta1, self.beta2), gamma=self.gamma, eps=self.eps)

    def curvature_due(self, step: int) -> bool:
        """True at step 0 and every ``curvature_every`` steps from there; gradients of any shape are taken in."""
        return step % self.curvature_every == 0

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """An objective whose labels are not drawn from a softmax of shape (N, V): there is nothing to sample."""
        yield from super().problems(recipe)
        if not recipe.objective.samples_labels:
            yield Problem(
                "optimizer.kind",
                f"sophia samples labels from the model's prediction, which objective '{recipe.objective.kind}' does "
                "not offer; use an objective that predicts tokens (masked, causal) or another optimizer (adamw)",
            )
