"""Lion: the sign of an interpolated momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from workbench.choices.choice import knob
from workbench.choices.optimizers.optimizer import OptimizerChoice, weight_decay_knob
from workbench.choices.optimizers.tensorwise import Group, States, Tensors, TensorwiseOptimizer, descend, pieces, zeros
from workbench.choices.schedules.schedule import Scheduled


class LionOptimizer(TensorwiseOptimizer):
    r"""Lion; a plain optimizer, usable without the rest of the workbench.

    For every parameter x with gradient g, element by element:

        u = sign(b1 m + (1 - b1) g)
        x <- x - lr (u + wd x)
        m <- b2 m + (1 - b2) g

    Every element that has a direction moves by exactly lr (before decay), whatever the gradient's scale.

    Args:
        lr: learning rate, >= 0: how far each element moves in one step.
        betas: b1, share of the momentum in the direction; b2, decay of the momentum; in [0, 1).
        weight_decay: wd, >= 0.

    State per parameter: ``exp_avg``, float32 in the parameter's shape.

    Raises:
        ValueError: a setting out of its range.

    Source: Chen et al. 2023 (arXiv 2302.06675), program 1. pytorch-optimizer's Lion is the oracle of the tests; it is
    not used, because it keeps the momentum in the parameter's type: in bf16, 1% of a gradient is rounded away.

    Example:
        >>> weight = torch.nn.Parameter(torch.tensor([3.0, -4.0]))
        >>> weight.grad = torch.tensor([1e-6, -10.0])
        >>> LionOptimizer([weight], lr=0.25, weight_decay=0.0).step()
        >>> weight.tolist()
        [2.75, -3.75]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.1,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        """Return the momentum, in the parameter's shape."""
        return {"exp_avg": zeros(parameter)}

    def update(self, weights: Tensors, grads: Tensors, states: States, group: Group) -> None:
        """One step of float32 tensors of any shapes, in place."""
        (beta1, beta2), lr, decay = group["betas"], group["lr"], group["weight_decay"]
        for x, g, m in pieces(weights, grads, [state["exp_avg"] for state in states]):
            direction = list(torch._foreach_lerp(m, g, 1 - beta1))
            torch._foreach_sign_(direction)
            torch._foreach_lerp_(m, g, 1 - beta2)
            if decay:
                torch._foreach_mul_(x, 1 - lr * decay)
            descend(x, direction, lr)


class Lion(OptimizerChoice):
    """Moves every weight by the same amount, in the direction of its momentum's sign.

    See :class:`LionOptimizer`: one moment of the parameter's shape instead of AdamW's two.

    Source: Chen et al. 2023 (arXiv 2302.06675): a rate 3 to 10 times smaller than AdamW's, a decay as much larger.
    """

    kind: Literal["lion"] = "lion"
    elementwise: ClassVar[bool] = True
    moments: ClassVar[tuple[str, ...]] = ("exp_avg",)
    lr: float = knob(1e-3, "peak learning rate: how far each weight moves per step", gt=0, le=100, scale="log")
    weight_decay: Scheduled = weight_decay_knob(0.1)
    beta1: float = knob(0.9, "share of the momentum in the direction of a step", ge=0, lt=1)
    beta2: float = knob(0.99, "decay of the momentum", ge=0, lt=1)

    def build(self, groups: list[dict[str, Any]], device: torch.device) -> torch.optim.Optimizer:
        """Return a :class:`LionOptimizer`; the moment has its parameter's shape, in float32 whatever its precision."""
        return LionOptimizer(groups, lr=self.lr, betas=(self.beta1, self.beta2))
