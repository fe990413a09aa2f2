"""LAMB: Adam's direction, scaled tensor by tensor to the weights' norm; with the variants in use as knobs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal

import torch
from pydantic import model_validator
from pydantic_core import PydanticCustomError
from torch import Tensor

from workbench.choices.choice import knob
from workbench.choices.optimizers.layerwise import Constants, LayerwiseOptimizer, bias_corrections
from workbench.choices.optimizers.optimizer import OptimizerChoice


class LAMB(LayerwiseOptimizer):
    r"""LAMB, a plain torch optimizer, usable without the rest of the workbench.

    For every parameter tensor x with gradient g, step t counted per tensor:

        m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
        u = (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps) + wd x
        x <- x - lr R(u) u,  R(u) = ||x|| / ||u|| within ``ratio_bounds``, 1 if either norm is 0

    Without bounds no tensor with a ratio moves by more, or less, than lr times its own norm. Biases and norms (what
    :func:`~workbench.choices.optimizers.optimizer.parameter_groups` marks as not decaying; without such a mark,
    tensors of fewer than two dimensions) take AdamW's step: R = 1, wd = 0.

    Args:
        lr: learning rate, >= 0: the relative change of a tensor in one step.
        betas: decay rates b1, b2 of the moments, in [0, 1).
        eps: added to the denominator, > 0.
        weight_decay: wd, >= 0.
        bias_correction: divide the moments by 1 - b^t; without it the first steps are cut short or, as R scales them
            anyway, only turned.
        ratio_bounds: least and greatest R, 0 <= least <= greatest; None for no bounds, or for no greatest.
        pre_normalise: divide all gradients by max(1, ||all gradients of this optimizer||) first (NVLAMB).
        adapt_vectors: biases and norms have a ratio, too, and decay as their group says.

    State: see :class:`~workbench.choices.optimizers.layerwise.LayerwiseOptimizer`.

    Raises:
        ValueError: a setting out of its range.
        RuntimeError: a sparse or complex gradient.

    Source: You et al. 2020 (arXiv 1904.00962), algorithm 2, with phi(z) = z; the bounds are on R, not on ||x||.

    Example:
        >>> weight = torch.nn.Parameter(torch.tensor([[3.0, 4.0]]))
        >>> optimizer = LAMB([weight], lr=0.1)
        >>> weight.square().sum().backward()
        >>> optimizer.step()
        >>> round(float((weight.detach() - torch.tensor([[3.0, 4.0]])).norm()), 3)  # lr * ||x||
        0.5
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        *,
        bias_correction: bool = True,
        ratio_bounds: tuple[float, float | None] | None = None,
        pre_normalise: bool = False,
        adapt_vectors: bool = False,
    ) -> None:
        lowest, highest = ratio_bounds or (0.0, None)
        if lowest < 0 or (highest is not None and highest < lowest):
            raise ValueError(f"LAMB: ratio_bounds must be 0 <= least <= greatest, got {ratio_bounds}")
        settings = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "bias_correction": bias_correction,
            "ratio_bounds": ratio_bounds, "pre_normalise": pre_normalise, "adapt_vectors": adapt_vectors,
        }  # fmt: skip
        super().__init__(params, settings)

    def _adapts(self, group: dict[str, Any], parameter: Tensor) -> bool:
        return bool(group["adapt_vectors"] or group.get("decays", parameter.ndim >= 2))

    def _gradient_scale(self, group: dict[str, Any], norm: Callable[[], Tensor]) -> Any:
        if not group["pre_normalise"]:
            return 1.0
        # A number where reading it is no wait; a tensor on an accelerator.
        found = norm()
        return 1 / max(1.0, found.item()) if found.device.type == "cpu" else 1 / found.clamp(min=1.0)

    def _constants(self, group: dict[str, Any], lr: Any, step: float, adapts: bool) -> Constants:
        beta1, beta2 = group["betas"]
        correction, root = bias_corrections(group["betas"], step) if group["bias_correction"] else (1.0, 1.0)
        lowest, highest = group["ratio_bounds"] or (0.0, None)
        return Constants(
            beta1=beta1, beta2=beta2, norm_eps=0.0, scale=1.0, eps=group["eps"] * root,
            momentum=root / correction, gradient=0.0, decay=group["weight_decay"] if adapts else 0.0,
            rate_momentum=lr, rate_gradient=0.0, lowest=lowest,
            highest=math.inf if highest is None else highest, adapts=adapts,
        )  # fmt: skip


class Lamb(OptimizerChoice):
    """Adam's steps scaled layer by layer to the weights, for large batches.

    See :class:`LAMB` for the formula and the card for which knobs make which published variant. The gradient's global
    norm is limited once, by ``pre_normalise``; ``clip_norm`` is empty by default and limits it before that.

    Source: You et al. 2020 (arXiv 1904.00962).
    """

    kind: Literal["lamb"] = "lamb"
    lr: float = knob(2e-3, "peak learning rate: the relative change of a matrix per step", gt=0, le=100, scale="log")
    clip_norm: float | None = knob(
        None, "global gradient norm is clipped to this; empty leaves it to pre_normalise", gt=0
    )
    beta1: float = knob(0.9, "decay of the first moment", ge=0, lt=1)
    beta2: float = knob(0.999, "decay of the second moment", ge=0, lt=1)
    eps: float = knob(1e-6, "added to the denominator", gt=0, scale="log")
    bias_correction: bool = knob(True, "divide the moments by 1 - beta^t, to correct for their start at zero")
    pre_normalise: bool = knob(True, "divide all gradients by their global norm where it exceeds 1 (NVLAMB)")
    ratio_min: float = knob(0.0, "lower bound of the trust ratio; 0 means none", ge=0)
    ratio_max: float | None = knob(None, "upper bound of the trust ratio; empty means none", gt=0)
    adapt_vectors: bool = knob(False, "give biases and norms a trust ratio as well (they never decay)")

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> Lamb:
        if self.ratio_max is not None and self.ratio_max < self.ratio_min:
            why = f"{self.ratio_max:g} is below ratio_min {self.ratio_min:g}; raise ratio_max or empty it"
            raise PydanticCustomError("knob", "{why}", {"name": "ratio_max", "why": why})
        return self

    @property
    def needs_all_tensors(self) -> str:
        """See :attr:`OptimizerChoice.needs_all_tensors`; only ``pre_normalise`` does."""
        why = "lamb divides all gradients by their common norm; set optimizer.pre_normalise to false and clip_norm to 1"
        return why if self.pre_normalise else ""

    def build(self, groups: list[dict[str, Any]], device: torch.device) -> torch.optim.Optimizer:
        """Return a :class:`LAMB`; both moments have their parameter's shape, in float32 whatever its precision."""
        return LAMB(
            groups,
            lr=self.lr,
            betas=(self.beta1, self.beta2),
            eps=self.eps,
            bias_correction=self.bias_correction,
            ratio_bounds=(self.ratio_min, self.ratio_max),
            pre_normalise=self.pre_normalise,
            adapt_vectors=self.adapt_vectors,
        )
