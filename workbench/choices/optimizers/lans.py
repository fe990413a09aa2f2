"""LANS: normalised gradients, layerwise trust ratios and Nesterov momentum, for very large batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from workbench.choices.choice import knob, one_of
from workbench.choices.optimizers.layerwise import Constants, LayerwiseOptimizer, bias_corrections
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.choices.schedules.schedule import Schedule
from workbench.choices.schedules.warmup_hold_decay import WarmupHoldDecay


class LANS(LayerwiseOptimizer):
    r"""LANS, a plain torch optimizer, usable without the rest of the workbench.

    For every parameter tensor x with gradient g, step t counted per tensor:

        ghat = g / (||g|| + eps)
        m = b1 m + (1 - b1) ghat;  v = b2 v + (1 - b2) ghat^2;  den = sqrt(v / (1 - b2^t)) + eps
        r = (m / (1 - b1^t)) / den + wd x;  c = ghat / den + wd x;  R(u) = ||x|| / ||u||, 1 if either norm is 0
        x <- x - lr (b1 R(r) r + (1 - b1) R(c) c)

    The step does not change when the gradient is scaled, and moves no tensor but a zero one by more than lr times its
    own norm. A tensor without a gradient keeps its moments and its own t; an all-zero gradient decays the moments and
    nothing else enters them.

    Args:
        lr: learning rate, >= 0: the largest relative change of a tensor in one step.
        betas: decay rates b1, b2 of the moments, in [0, 1).
        eps: added to the gradient's norm and to the denominator, > 0.
        weight_decay: wd, >= 0.

    State: see :class:`~workbench.choices.optimizers.layerwise.LayerwiseOptimizer`.

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

    normalised: ClassVar[bool] = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def _constants(self, group: dict[str, Any], lr: Any, step: float, adapts: bool) -> Constants:
        beta1, beta2 = group["betas"]
        correction, root = bias_corrections(group["betas"], step)
        return Constants(
            beta1=beta1, beta2=beta2, norm_eps=group["eps"], scale=1.0, eps=group["eps"] * root,
            momentum=root / correction, gradient=root, decay=group["weight_decay"],
            rate_momentum=lr * beta1, rate_gradient=lr * (1 - beta1),
        )  # fmt: skip


class Lans(OptimizerChoice):
    """Layerwise adaptive steps with Nesterov momentum for very large batches.

    See :class:`LANS` for the formula. The defaults are those published for the first phase of BERT-large (96K rows of
    128 tokens): lr .00675, warm-up 42.65%, hold 27.35%, linear decay; no clipping, since gradients are normalised.

    Source: Zheng et al. 2020 (arXiv 2006.13484), section 3 and table 2.
    """

    kind: Literal["lans"] = "lans"
    moments: ClassVar[tuple[str, ...]] = ("exp_avg", "exp_avg_sq")
    lr: float = knob(
        6.75e-3, "peak learning rate: the largest relative change of a tensor per step", gt=0, le=100, scale="log"
    )
    schedule: one_of(Schedule) = knob(  # type: ignore[valid-type]
        help="shape of the learning rate, as a factor on lr",
        unit="\u00d7 lr",
        default_factory=lambda: WarmupHoldDecay(warmup=0.4265, hold=0.2735),
    )
    clip_norm: float | None = knob(None, "global gradient norm is clipped to this; empty means no clipping", gt=0)
    beta1: float = knob(0.9, "decay of the first moment, and its share of the step", ge=0, lt=1)
    beta2: float = knob(0.999, "decay of the second moment", ge=0, lt=1)
    eps: float = knob(1e-6, "added to the gradient's norm and to the denominator", gt=0, scale="log")

    def build(self, groups: list[dict[str, Any]], device: torch.device) -> torch.optim.Optimizer:
        """Return a :class:`LANS`; both moments have their parameter's shape, in float32 whatever its precision."""
        return LANS(groups, lr=self.lr, betas=(self.beta1, self.beta2), eps=self.eps)
